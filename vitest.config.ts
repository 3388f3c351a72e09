import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      "packages/*",
      "apps/*",
      "tooling/{tidy,doctest,pack-check,sim,exclusion,bench,mutants,spin,store-faults}",
    ],
    reporters: ["default", "./tooling/vitest-config/closing-line-reporter.mjs"],
  },
});
