import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** The exports condition under which workspace packages answer with their TypeScript source. */
export const sourceCondition = "@turnkeeper/source";

// As Node itself resolves: `module` is for bundlers, and what it names need not load in Node.
const conditions = [sourceCondition, "node", "development|production"];

/** Where each test ends as it began: what makes turns start and stop. The others close servers and children late. */
const leavesNothing = new Set([
  "turn-lease",
  "turn-liveness",
  "interrupt",
  "compression-fence",
  "periodic-scheduler",
  "agent-core",
]);

/** Their tests compare measured times, or count what a crew reaches in a while: no other file runs beside theirs. */
const runsAlone = new Set(["bench", "exclusion", "state-store-sqlite"]);

function beside(file) {
  return fileURLToPath(new URL(file, import.meta.url));
}

function hasPropertyTests(name) {
  return ["packages", "apps", "tooling"].some((folder) =>
    existsSync(beside(`../../${folder}/${name}/node_modules/fast-check`)),
  );
}

/** What runs before each test file. A seed is set where the environment names one; by hand each run draws its own. */
function setupFiles(name) {
  const files = leavesNothing.has(name) ? ["nothing-left.mjs"] : [];
  if (process.env.FAST_CHECK_SEED && hasPropertyTests(name)) files.push("property-seed.mjs");
  return files.map(beside);
}

/** What a project starts once, before all of its test files. */
function globalSetup(name) {
  return ["packages", "apps", "tooling"]
    .map((folder) => beside(`../../${folder}/${name}/test/global-setup.ts`))
    .filter((file) => existsSync(file));
}

/** One package's vitest config: other workspace packages resolve to their TypeScript source, so tests need no build. */
export function packageConfig(name) {
  return defineConfig({
    resolve: { conditions },
    ssr: { resolve: { conditions, externalConditions: [sourceCondition, "node"] } },
    test: {
      name,
      environment: "node",
      fileParallelism: !runsAlone.has(name),
      include: ["test/**/*.test.ts"],
      setupFiles: setupFiles(name),
      globalSetup: globalSetup(name),
      unstubEnvs: true,
      restoreMocks: true,
      testTimeout: 30_000,
    },
  });
}
