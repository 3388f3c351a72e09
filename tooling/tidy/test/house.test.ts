import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { houseRules } from "../src/house-rules.ts";
import { readRepository } from "../src/repository.ts";
import { describeFinding } from "../src/rule.ts";
import { sizeNotes } from "../src/rules/size.ts";

const repository = readRepository(fileURLToPath(new URL("../../../", import.meta.url)));

describe("this repository", () => {
  it.each(houseRules.map((rule) => [rule.title, rule] as const))("%s", (_title, rule) => {
    expect(rule.check(repository).map(describeFinding)).toEqual([]);
  });

  it("is found: the rules look at every package and app", () => {
    expect(repository.has("packages/kernel/src/index.ts")).toBe(true);
    expect(repository.has("apps/cli/package.json")).toBe(true);
  });

  it("prints what is long, without failing on it", () => {
    const notes = sizeNotes(repository);
    if (notes.length > 0) console.log(["A place to ask, not a verdict:", ...notes].join("\n  "));
    expect(notes.every((note) => note.endsWith("?"))).toBe(true);
  });
});
