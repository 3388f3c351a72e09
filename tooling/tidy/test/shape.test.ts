import { describe, expect, it } from "vitest";
import { completeReadme } from "../src/rules/complete-readme.ts";
import { configTwins } from "../src/rules/config-twins.ts";
import { facesAreLists, namedExports, noBorrowedNames } from "../src/rules/faces.ts";
import { tellingFileNames } from "../src/rules/file-names.ts";
import { manifestTwins } from "../src/rules/manifest-twins.ts";
import { readmeTwins } from "../src/rules/readme-twins.ts";
import { codeLineCount, kernelStaysSmall, sizeNotes } from "../src/rules/size.ts";
import { edited, findingsOf, madeUpTree } from "./made-up-tree.ts";

const turnFile = "packages/turn/src/turn.ts";
const face = "packages/turn/src/index.ts";
const manifest = "packages/turn/package.json";

describe("faces", () => {
  it("hold nothing but named re-exports of their own package", () => {
    for (const text of [
      'export * from "./turn.ts";',
      "export const turn = 1;",
      'import "./turn.ts";',
      "export {};",
      'export { kernel } from "@turnkeeper/kernel";',
      "console.log(1);",
    ]) {
      expect(findingsOf(facesAreLists, { [face]: text })).toHaveLength(1);
    }
    expect(
      findingsOf(facesAreLists, {
        [face]: '// Turns.\nexport { turn } from "./turn.ts";\nexport type { Turn } from "./turn.ts";\n',
      }),
    ).toEqual([]);
  });

  it("export by name: no default, no star", () => {
    for (const text of [
      "export default 1;",
      "export default function turn() {}",
      'export * from "./a.ts";',
      'export * as a from "./a.ts";',
      "const a = 1;\nexport { a as default };",
    ]) {
      expect(findingsOf(namedExports, { [turnFile]: text })).toHaveLength(1);
    }
  });

  it("hand on nothing of a sibling, in any spelling", () => {
    const imported = 'import { kernel } from "@turnkeeper/kernel";\nimport type { Port } from "@turnkeeper/ports";\n';
    for (const text of [
      'export { kernel } from "@turnkeeper/kernel";',
      'export type { Port } from "@turnkeeper/ports";',
      `${imported}export { kernel };`,
      `${imported}export type { Port };`,
      `${imported}export type Door = Port;`,
    ]) {
      expect(findingsOf(noBorrowedNames, { [turnFile]: text })[0]).toMatch(
        /hands on (kernel|Port) of @turnkeeper\/(kernel|ports); let callers import it from/,
      );
    }
    expect(
      findingsOf(noBorrowedNames, {
        [turnFile]: `${imported}export interface Door extends Port { open: boolean }\nexport type Doors = readonly Port[];`,
      }),
    ).toEqual([]);
  });
});

describe("twins", () => {
  it("have the same fields in the same order", () => {
    expect(findingsOf(manifestTwins, edited(manifest, '  "license": "MIT",\n', ""))[0]).toContain('lacks "license"');
    expect(
      findingsOf(manifestTwins, edited(manifest, '"type": "module"', '"main": "x", "type": "module"'))[0],
    ).toContain('has the field "main", which its twins have not');
    const swapped = edited(
      manifest,
      '"type": "module",\n  "sideEffects": false',
      '"sideEffects": false,\n  "type": "module"',
    );
    expect(findingsOf(manifestTwins, swapped)[0]).toContain(
      "has its fields in the order name, version, description, license, repository, files, sideEffects, type",
    );
    expect(findingsOf(manifestTwins, edited(manifest, '"sideEffects": false', '"sideEffects": true'))[0]).toContain(
      "sideEffects is true; write false",
    );
    expect(findingsOf(manifestTwins, edited(manifest, '"version": "0.0.0"', '"version": "0.1.0"')).join()).toContain(
      "all packages carry one version",
    );
    expect(findingsOf(manifestTwins, edited(manifest, "Does one thing.", "does one thing"))[0]).toContain(
      "the description is not a sentence",
    );
  });

  it("open their doors in the same way, source condition first", () => {
    const broken = edited(
      manifest,
      '"types": "./dist/index.d.ts",\n      "default": "./dist/index.js"',
      '"default": "./dist/index.js",\n      "types": "./dist/index.d.ts"',
    );
    expect(findingsOf(manifestTwins, broken)[0]).toContain('exports["."] is');
  });

  it("are compiled and tested in the same way", () => {
    expect(
      findingsOf(configTwins, edited("packages/turn/tsconfig.json", '"rootDir": "src"', '"rootDir": "."'))[0],
    ).toContain("packages/turn/tsconfig.json: differs from its twins");
    expect(findingsOf(configTwins, edited("packages/turn/tsconfig.json", '"../ports"', '"../cli"'))[0]).toContain(
      "reference the workspace dependencies: ../kernel, ../ports",
    );
    expect(findingsOf(configTwins, { "packages/turn/vitest.config.ts": "export default {};\n" })[0]).toContain(
      "differs from its twins",
    );
    expect(findingsOf(configTwins, { "packages/turn/test/turn.test.ts": undefined })[0]).toContain("holds no test");
    expect(findingsOf(configTwins, edited("tsconfig.json", '"packages/turn"', '"packages/tern"'))[0]).toContain(
      "does not build packages/turn",
    );
  });

  it("explain themselves under the same headings", () => {
    expect(findingsOf(readmeTwins, edited("packages/turn/README.md", "## Errors\n\n", ""))[0]).toContain(
      "packages/turn/README.md: has the headings: Invariant",
    );
    expect(findingsOf(readmeTwins, edited("packages/turn/README.md", "# @turnkeeper/turn", "# Turn"))[0]).toContain(
      'begin with "# @turnkeeper/turn"',
    );
    expect(findingsOf(readmeTwins, edited("packages/turn/README.md", "npm install @turnkeeper/turn", ""))[0]).toContain(
      "does not say how to install it",
    );
    expect(findingsOf(readmeTwins, { "apps/cli/README.md": undefined })[0]).toContain("is missing");
    const fenced = edited("packages/turn/README.md", "## Example\n", "## Example\n\n```sh\n## not a heading\n```\n");
    expect(findingsOf(readmeTwins, fenced)).toEqual([]);
  });
});

describe("a README", () => {
  it("names what is exported and what is thrown", () => {
    const more = { [face]: 'export { turn, walk } from "./turn.ts";\nexport type { Turn } from "./turn.ts";\n' };
    expect(findingsOf(completeReadme, more)).toEqual([
      "packages/turn/README.md: does not mention walk, which the package exports; give it a heading under API, or stop exporting it",
    ]);
    const codes = edited(
      turnFile,
      "export const",
      'export type TurnErrorCode = "TURN_LOST" | "TURN_BUSY";\nexport const',
    );
    expect(findingsOf(completeReadme, codes)).toHaveLength(2);
    expect(findingsOf(completeReadme, codes)[0]).toContain("does not mention the error code TURN_LOST");
    expect(
      findingsOf(completeReadme, {
        ...codes,
        ...edited("packages/turn/README.md", "## Errors", "## Errors\n`TURN_LOST`, `TURN_BUSY`"),
      }),
    ).toEqual([]);
  });
});

describe("names and sizes", () => {
  it("refuses names that say nothing", () => {
    for (const name of ["utils.ts", "types.ts", "helpers/turn.ts", "misc.ts", "common.test-d.ts"]) {
      expect(findingsOf(tellingFileNames, { [`packages/turn/src/${name}`]: "" })[0]).toContain("names no concept");
    }
    expect(findingsOf(tellingFileNames, { "packages/turn/src/turnStep.ts": "" })[0]).toContain("is not kebab-case");
    expect(findingsOf(tellingFileNames, { "packages/turn/test/turn-test.ts": "" })[0]).toContain(
      "end the name with .test.ts",
    );
  });

  it("counts lines that hold code, and keeps kernel below its bound", () => {
    const text = "/**\n * Words.\n */\n\nexport const a = [\n  1, // one\n\n  2,\n];\n// more\n";
    expect(codeLineCount(madeUpTree({ [turnFile]: text }).source(turnFile))).toBe(4);
    const lines = Array.from({ length: 301 }, (_, index) => `export const a${index} = ${index};\n`).join("");
    expect(findingsOf(kernelStaysSmall, { "packages/kernel/src/kernel.ts": lines })[0]).toContain(
      "packages/kernel/src: holds 302 lines of code",
    );
    expect(findingsOf(kernelStaysSmall, { "packages/kernel/src/kernel.ts": `// word\n${"\n".repeat(400)}` })).toEqual(
      [],
    );
  });

  it("notes long files and wide faces, and fails on neither", () => {
    expect(sizeNotes(madeUpTree())).toEqual([]);
    const names = Array.from({ length: 13 }, (_, index) => `a${index}`).join(", ");
    const tree = madeUpTree({
      [turnFile]: "\n".repeat(300) + "export const turn = 1;\n",
      [face]: `export { ${names} } from "./turn.ts";\n`,
    });
    expect(sizeNotes(tree)).toEqual([
      `${turnFile} has 301 lines: which noun is missing?`,
      "turn exports 13 values: is each of them for callers?",
    ]);
  });
});
