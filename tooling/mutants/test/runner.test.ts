import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { mutated, mutationsOf } from "../src/mutation.ts";
import type { Mutation, MutationDraft } from "../src/mutation.ts";
import { sweep } from "../src/sweep.ts";

const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A repository of one package: a guard that a test knows, and one that no test knows. */
function tinyRepository(guard = "age >= 18"): string {
  const root = mkdtempSync(path.join(tmpdir(), "turnkeeper-tiny-"));
  folders.push(root);
  const write = (file: string, text: string): void => {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  };
  write("packages/door/package.json", '{ "type": "module" }\n');
  write("packages/door/src/door.ts", `export const opens = (age: number): boolean => ${guard} && age < 1000;\n`);
  write(
    "packages/door/test/door.test.ts",
    `import { expect, test } from "vitest";
import { opens } from "../src/door.ts";
test("somebody gets in", () => {
  expect(opens(17)).toBe(false);
});
test("nobody under (18) gets in", () => {
  expect(opens(17)).toBe(false);
  expect(opens(18)).toBe(true);
});
`,
  );
  write("apps/gateway/package.json", "{}\n");
  write("tooling/vitest-config/package.json", "{}\n");
  write("tooling/postgres-server/package.json", "{}\n");
  write("tsconfig.base.json", "{}\n");
  symlinkSync(path.join(repository, "node_modules"), path.join(root, "node_modules"));
  return root;
}

function doorMutation(facts: Partial<MutationDraft>): Mutation {
  const known = { id: "any-age", file: "door", find: "age >= 18", replace: "true", guards: "DOOR-1", tests: ["door"] };
  const [mutation] = mutationsOf("door", [{ ...known, ...facts }]);
  if (!mutation) throw new Error("One draft is one mutation.");
  return mutation;
}

describe("a mutation", () => {
  it("replaces what stands in its file exactly once", () => {
    expect(mutated("if (age >= 18) open();", doorMutation({}))).toBe("if (true) open();");
  });

  it("is an error where its text is gone, or stands twice, or stays the same", () => {
    expect(() => mutated("if (age > 17) open();", doorMutation({}))).toThrow("0 times");
    expect(() => mutated("age >= 18 || age >= 18", doorMutation({}))).toThrow("2 times");
    expect(() => mutated("age >= 18", doorMutation({ replace: "age >= 18" }))).toThrow("same text");
  });

  it("keeps a replacement as it is written", () => {
    expect(mutated("age >= 18", doorMutation({ replace: "'$&'" }))).toBe("'$&'");
  });
});

describe("a sweep", { timeout: 120_000 }, () => {
  it("tells a mutation that the test it names catches from one that none does, and from one that does not even load", async () => {
    const mutations = [
      doorMutation({ only: "nobody under (18)" }),
      doorMutation({ id: "ever-older", find: "age < 1000", replace: "true", only: "nobody under" }),
      doorMutation({ id: "no-code", replace: "((", only: "nobody under" }),
    ];
    const verdicts = await sweep(mutations, { root: tinyRepository(), laneCount: 1, onVerdict: () => {} });
    expect(verdicts.map(({ isCaught, told }) => [isCaught, told.split("\n")[0]])).toEqual([
      [true, "nobody under (18) gets in"],
      [false, "every test passed"],
      [false, expect.stringContaining("Transform failed")],
    ]);
  });

  it("is refused where the tests fail with every guard in place", async () => {
    const swept = sweep([doorMutation({ find: "age >= 10", only: "nobody under" })], {
      root: tinyRepository("age >= 10"),
      laneCount: 1,
      onVerdict: () => {},
    });
    await expect(swept).rejects.toThrow("do not pass with every guard in place: nobody under (18) gets in");
  });
});
