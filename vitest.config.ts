import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // A file that waits for its processes leaves its core to another.
    maxWorkers: "100%",
    projects: [
      "packages/*",
      "apps/*",
      "tooling/{tidy,doctest,pack-check,sim,exclusion,bench,mutants,spin,store-faults}",
    ],
    reporters: ["default", "./tooling/vitest-config/closing-line-reporter.mjs"],
  },
});
