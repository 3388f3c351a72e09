import { defineConfig } from "vitest/config";

/** The exports condition under which workspace packages answer with their TypeScript source. */
export const sourceCondition = "@turnkeeper/source";

const conditions = [sourceCondition, "module", "node", "development|production"];

/** One package's vitest config: other workspace packages resolve to their TypeScript source, so tests need no build. */
export function packageConfig(name) {
  return defineConfig({
    resolve: { conditions },
    ssr: { resolve: { conditions, externalConditions: [sourceCondition, "node"] } },
    test: {
      name,
      environment: "node",
      include: ["test/**/*.test.ts"],
      unstubEnvs: true,
      restoreMocks: true,
      testTimeout: 30_000,
    },
  });
}
