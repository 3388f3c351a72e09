import { describe, expect, it } from "vitest";
import { declaredDependencies, dependencyVersions, oneSqlite } from "../src/rules/declared-dependencies.ts";
import { cyclesOf, noImportCycles } from "../src/rules/import-cycles.ts";
import { importDirection, packageDoors, relativeImports } from "../src/rules/import-direction.ts";
import { edited, findingsOf } from "./made-up-tree.ts";

const turnFile = "packages/turn/src/turn.ts";

describe("import direction", () => {
  it("refuses a value of a package that the row does not name", () => {
    const changes = {
      "packages/ports/src/ports.ts": 'import { turn } from "@turnkeeper/turn";\nexport const ports = turn;\n',
    };
    expect(findingsOf(importDirection, changes)).toEqual([
      'packages/ports/src/ports.ts:1: ports may not import @turnkeeper/turn; take it as an argument (a function or a two-line port), or change the column "may import at run time" of ARCHITECTURE.md with a reason',
    ]);
  });

  it("lets a types-only sibling in by import type and by nothing else", () => {
    const spellings = [
      'import { Port } from "@turnkeeper/ports";',
      'import { type Port } from "@turnkeeper/ports";',
      'export { ports } from "@turnkeeper/ports";',
      'const ports = await import("@turnkeeper/ports");',
      'import "@turnkeeper/ports";',
    ];
    for (const spelling of spellings) expect(findingsOf(importDirection, { [turnFile]: spelling })).toHaveLength(1);
    for (const spelling of [
      'import type { Port } from "@turnkeeper/ports";',
      'export type Port = import("@turnkeeper/ports").Port;',
    ]) {
      expect(findingsOf(importDirection, { [turnFile]: spelling })).toEqual([]);
    }
  });

  it("refuses a package of another author that the row does not name, and a package that imports itself by name", () => {
    expect(
      findingsOf(importDirection, { [turnFile]: 'import { z } from "zod";\nimport { z as mini } from "zod/mini";' }),
    ).toEqual([]);
    expect(findingsOf(importDirection, { [turnFile]: 'import { left } from "left-pad";' })[0]).toContain(
      'turn may not import left-pad; take it as an argument (a function or a two-line port), or change the column "from npm"',
    );
    expect(findingsOf(importDirection, { [turnFile]: 'import { turn } from "@turnkeeper/turn";' })[0]).toContain(
      "turn imports itself by name",
    );
  });

  it("reads the table: a row that goes is missed, a row without a package is found", () => {
    const without = findingsOf(
      importDirection,
      edited("ARCHITECTURE.md", "| `turn` | the turn | kernel | ports | zod |\n", ""),
    );
    expect(without).toEqual([
      'ARCHITECTURE.md: the table "Packages and import direction" has no row for turn; add its row: what it owns and what it may import',
    ]);
    const renamed = findingsOf(
      importDirection,
      edited("ARCHITECTURE.md", "| `turn` | the turn |", "| `tern` | the turn |"),
    );
    expect(renamed).toHaveLength(2);
    expect(
      findingsOf(importDirection, edited("ARCHITECTURE.md", "| kernel | ports | zod |", "| – | ports | zod |"))[0],
    ).toContain("turn may not import @turnkeeper/kernel");
  });

  it("keeps relative imports inside the package, and tests out of source", () => {
    expect(findingsOf(relativeImports, { [turnFile]: 'import { kernel } from "../../kernel/src/kernel.ts";' })).toEqual(
      [`${turnFile}:1: ../../kernel/src/kernel.ts leaves packages/turn; import the other package by its name`],
    );
    expect(findingsOf(relativeImports, { [turnFile]: 'import { fake } from "../test/fake.ts";' })[0]).toContain(
      "leaves src",
    );
  });

  it("knows the doors of a sibling, and keeps fakes out of shipped source", () => {
    expect(
      findingsOf(packageDoors, { [turnFile]: 'import { kernel } from "@turnkeeper/kernel/src/kernel.ts";' })[0],
    ).toContain("has no door ./src/kernel.ts; import from one of: .");
    const door = edited("packages/kernel/package.json", '"./package.json"', '"./testing": {}, "./package.json"');
    const source = 'import { virtual } from "@turnkeeper/kernel/testing";';
    expect(findingsOf(packageDoors, { ...door, [turnFile]: source })[0]).toContain(
      "shipped source imports the fakes of @turnkeeper/kernel",
    );
    expect(
      findingsOf(packageDoors, {
        ...door,
        "packages/turn/test/turn.test.ts": source,
        "packages/turn/src/testing/fake.ts": source,
      }),
    ).toEqual([]);
  });
});

describe("circles", () => {
  it("are found once, in order, whatever leads into them", () => {
    expect(
      cyclesOf(
        new Map([
          ["start", ["a"]],
          ["a", ["b"]],
          ["b", ["c"]],
          ["c", ["a", "end"]],
          ["end", []],
        ]),
      ),
    ).toEqual([["a", "b", "c"]]);
    expect(
      cyclesOf(
        new Map([
          ["a", ["b", "c"]],
          ["b", ["d"]],
          ["c", ["d"]],
          ["d", []],
        ]),
      ),
    ).toEqual([]);
    expect(cyclesOf(new Map([["a", ["a"]]]))).toEqual([["a"]]);
  });

  it("are refused between modules that load each other, not between types", () => {
    const circle = {
      [turnFile]: 'export { step } from "./step.ts";',
      "packages/turn/src/step.ts": 'import { turn } from "./turn.ts";\nexport const step = turn;',
    };
    expect(findingsOf(noImportCycles, circle)[0]).toContain(
      "a circle: packages/turn/src/turn.ts -> packages/turn/src/step.ts -> packages/turn/src/turn.ts",
    );
    expect(
      findingsOf(noImportCycles, {
        ...circle,
        "packages/turn/src/step.ts": 'import type { Turn } from "./turn.ts";\nexport type Step = Turn;',
      }),
    ).toEqual([]);
  });
});

describe("declared dependencies", () => {
  it("misses what is imported and not declared, in src and in test", () => {
    expect(
      findingsOf(declaredDependencies, edited(turnFile, "import type", 'import { z } from "zod";\nimport type')),
    ).toEqual(['packages/turn/package.json: src imports zod, which is not in dependencies; add "zod" to dependencies']);
    expect(
      findingsOf(
        declaredDependencies,
        edited("packages/turn/test/turn.test.ts", "import { turn }", 'import fc from "fast-check";\nimport { turn }'),
      )[0],
    ).toContain('add "fast-check" to devDependencies');
  });

  it("finds what is declared and not imported", () => {
    expect(
      findingsOf(
        declaredDependencies,
        edited(turnFile, 'import type { Port } from "@turnkeeper/ports";', "interface Port { at: number }"),
      ),
    ).toEqual([
      "packages/turn/package.json: @turnkeeper/ports is in dependencies and src does not import it; remove it",
    ]);
    expect(
      findingsOf(
        declaredDependencies,
        edited("packages/turn/package.json", '"vitest":', '"fast-check": "catalog:", "vitest":'),
      )[0],
    ).toContain("fast-check is in devDependencies and no test imports it");
  });

  it("takes what a program bundles for a development dependency, and leaves what stays outside to the bundle", () => {
    const manifest = (more: string): string => `{ "name": "turnkeeper", "private": false, ${more} }`;
    const program = {
      "apps/cli/bundle.mjs": 'import { rolldown } from "rolldown";\n',
      "apps/cli/src/main.ts": 'import { z } from "zod";\n',
    };
    const always =
      '"@turnkeeper/turn": "workspace:^", "@turnkeeper/vitest-config": "workspace:^", "vitest": "catalog:"';
    const declared = `"dependencies": { "native": "catalog:" }, "devDependencies": { ${always}, "rolldown": "catalog:"`;
    const findings = (devDependencies: string): readonly string[] =>
      findingsOf(declaredDependencies, {
        ...program,
        "apps/cli/package.json": manifest(`${declared}${devDependencies} }`),
      });
    expect(findings(', "zod": "catalog:"')).toEqual([]);
    expect(findings("")).toEqual([
      'apps/cli/package.json: src imports zod, which is not in devDependencies; add "zod" to devDependencies',
    ]);
    expect(findings(', "yaml": "catalog:", "zod": "catalog:"')).toEqual([
      "apps/cli/package.json: yaml is in devDependencies and no test imports it; remove it",
    ]);
  });

  it("counts plain scripts, and what they start by name", () => {
    const sim = {
      "tooling/sim/package.json":
        '{ "name": "@turnkeeper/sim", "dependencies": { "tsx": "catalog:", "zod": "catalog:" } }',
      "tooling/sim/src/main.ts": "export const main = 1;",
    };
    expect(findingsOf(declaredDependencies, sim)).toHaveLength(2);
    const run = 'import { z } from "zod";\nspawnSync(process.execPath, ["--import", "tsx", z]);';
    expect(findingsOf(declaredDependencies, { ...sim, "tooling/sim/run.mjs": run })).toEqual([]);
  });

  it("takes versions from the catalog and the workspace, and one better-sqlite3", () => {
    expect(
      findingsOf(
        dependencyVersions,
        edited("packages/turn/package.json", '"vitest": "catalog:"', '"vitest": "^4.0.0"'),
      ),
    ).toEqual([
      'packages/turn/package.json: vitest is asked for as ^4.0.0; write "catalog:" and pin it in pnpm-workspace.yaml',
    ]);
    expect(
      findingsOf(
        dependencyVersions,
        edited("packages/turn/package.json", '"@turnkeeper/kernel": "workspace:^"', '"@turnkeeper/kernel": "^0.1.0"'),
      )[0],
    ).toContain('write "workspace:^"');
    const two = edited("pnpm-lock.yaml", "snapshots:", "  better-sqlite3@11.0.0:\n    resolution: {}\n\nsnapshots:");
    expect(findingsOf(oneSqlite, two)[0]).toContain("better-sqlite3 is resolved to 12.11.1 and 11.0.0");
  });
});
