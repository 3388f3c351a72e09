import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { writeExamples } from "../src/consumer.ts";
import type { Consumer } from "../src/consumer.ts";
import { checkContents } from "../src/shape.ts";
import { packAll } from "../src/tarballs.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "turnkeeper-pack-check-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function installed(files: Readonly<Record<string, string>>): Consumer {
  const packageFolder = path.join(folder, "node_modules", "p");
  for (const [file, text] of Object.entries({ LICENSE: "", "README.md": "", "package.json": "{}", ...files })) {
    mkdirSync(path.join(packageFolder, path.dirname(file)), { recursive: true });
    writeFileSync(path.join(packageFolder, file), text);
  }
  return { folder, packageFolder };
}

describe("the contents of a package", () => {
  it("a bundle has chunks without a source, and the notices of what went into it", () => {
    const files = { "dist/chunk.js": "" };
    expect(checkContents(installed(files), { isBundled: true })).toEqual(["lacks dist/third-party.txt"]);
    expect(checkContents(installed({ ...files, "dist/third-party.txt": "" }), { isBundled: true })).toEqual([]);
  });

  it("are its build, its source, licence and README", () => {
    expect(
      checkContents(installed({ "dist/a.js": "", "dist/a.d.ts": "", "src/a.ts": "" }), { isBundled: false }),
    ).toEqual([]);
  });

  it("hold no leftovers, no tests, and no protocol that only the workspace knows", () => {
    const files = {
      "dist/gone.js": "",
      "dist/.tsbuildinfo": "",
      "test/a.test.ts": "",
      "package.json": '{ "dependencies": { "a": "workspace:^" } }',
    };
    const findings = checkContents(installed(files), { isBundled: false });
    expect(findings).toEqual([
      "dist/.tsbuildinfo should not be published",
      "dist/gone.js has no source: a leftover of an earlier build, remove dist and build again",
      "test/a.test.ts should not be published",
      "package.json still says workspace:",
    ]);
  });
});

describe("the example of a package", () => {
  it("becomes JavaScript that a stranger's Node can run", () => {
    const fence = "```";
    const consumer = installed({
      "README.md": `# p\n\n## Example\n\n${fence}ts\nconst a: number = 1;\nconsole.log(a);\n${fence}\n`,
    });
    expect(writeExamples(consumer)).toEqual([path.join(folder, "example-5.js")]);
    expect(readFileSync(path.join(folder, "example-5.js"), "utf8")).toMatch(/^const a = 1;\nconsole\.log\(a\);\n/);
    expect(writeExamples(installed({ "README.md": "# p\n" }))).toEqual([]);
  });
});

describe("packing", () => {
  it("says what is not built, and how to build it", async () => {
    const project = {
      kind: "packages",
      folder: "packages/p",
      key: "p",
      manifest: { name: "p" },
      sources: [],
      tests: [],
      isBundled: false,
    } as const;
    await expect(packAll(folder, [project], folder)).rejects.toThrow(
      'Not built: packages/p. Run "npm run build:all" first.',
    );
  });
});
