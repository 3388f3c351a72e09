import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { mutated } from "../src/mutation.ts";
import { sweep } from "../src/sweep.ts";
import { mutationTable } from "../src/table.ts";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..", "..", "..");

/** Quick ones, so that what catches mutants is itself known to work; the whole sweep runs by hand. */
const sample = new Set(["interrupt/claim-not-asked", "interrupt/claim-consumed-before-the-wait"]);

describe("the table of mutations", () => {
  it("fits the code: each replaces a text that stands in its file exactly once", () => {
    const drifted = mutationTable.flatMap((mutation) => {
      try {
        mutated(readFileSync(path.join(root, mutation.file), "utf8"), mutation);
        return [];
      } catch (error) {
        return [String(error)];
      }
    });
    expect(drifted).toEqual([]);
  });

  it("names each mutation once, and tests that exist", () => {
    expect(new Set(mutationTable.map(({ id }) => id)).size).toBe(mutationTable.length);
    const files = mutationTable.flatMap(({ folder, tests }) => tests.map((test) => `${folder}/${test}`));
    expect(files.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
    expect(mutationTable.filter(({ tests }) => tests.length === 0)).toEqual([]);
  });

  it("names what each guard keeps: an invariant, a rule of the protocol, a threat, or a promise of the gateway", () => {
    const tables = ["ARCHITECTURE.md", "SECURITY.md", "apps/gateway/README.md"];
    const text = tables.map((name) => readFileSync(path.join(root, name), "utf8")).join("\n");
    const unknown = mutationTable.filter(
      ({ guards }) => !/^7\.([1-9]|1\d|2[0-3])$/.test(guards) && !text.includes(`\n| ${guards} |`),
    );
    expect(unknown.map(({ id, guards }) => `${id}: ${guards}`)).toEqual([]);
  });

  it("is caught, as far as a sample shows", { timeout: 240_000 }, async () => {
    const mutations = mutationTable.filter(({ id }) => sample.has(id));
    expect(mutations).toHaveLength(sample.size);
    const verdicts = await sweep(mutations, { root, laneCount: 1, onVerdict: () => {} });
    expect(verdicts.filter(({ isCaught }) => !isCaught)).toEqual([]);
  });
});
