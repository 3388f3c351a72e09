import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { foldText, searchTerms, snippetOf } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Connection } from "../src/connection.ts";
import { gramQuery, gramsOf } from "../src/search-grams.ts";
import { findCandidates } from "../src/search-index.ts";
import { Transaction } from "../src/transaction.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

/** Characters that meet every way of folding, cutting and quoting, few enough to be found again in other texts. */
const characters = Array.from("abAB12 \t\n\"'*()-_^:.,ßéİΣςσ数据库東京🙂ｆ\u0000\u0301\u00a0\u200d\ue000\ue001\ud800");
const textOf = (maxLength: number): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...characters), { maxLength }).map((all) => all.join(""));

test("the index leaves out no entry that has every term, whatever the text and the terms", async () => {
  const path = join(folder(), "state.db");
  await (await openSqliteStore(path, { host: virtualHost() })).close();
  const rows = new Connection(path, "write");
  const tx = new Transaction(rows, virtualHost().clock, "normal");
  const met = { found: 0, byIndex: 0, leftOut: 0 };
  fc.assert(
    fc.property(
      fc.array(textOf(30), { minLength: 1, maxLength: 6 }),
      fc.oneof(textOf(4), textOf(12), fc.tuple(fc.nat(5), fc.nat(20), fc.nat(6))),
      (texts, asked) => {
        // A part of one of the texts, so that terms of every kind are found often.
        const text = typeof asked === "string" ? asked : (texts[asked[0]] ?? "").slice(asked[1], asked[1] + asked[2]);
        const terms = searchTerms(text);
        rows.begin("normal");
        for (const [index, one] of texts.entries())
          rows.run(
            "INSERT INTO entry_gram (rowid, grams) VALUES (?, ?)",
            index + 1,
            gramsOf((index % 2) + 1, foldText(one)),
          );
        for (const sessionNo of [undefined, 1]) {
          const query = gramQuery(terms, sessionNo);
          const having = texts.flatMap((one, index) =>
            snippetOf(one, terms) !== undefined && (sessionNo === undefined || index % 2 === 0) ? [index + 1] : [],
          );
          met.found += having.length;
          if (query === undefined) continue;
          const candidates = findCandidates(tx, query, Number.MAX_SAFE_INTEGER, 100);
          expect(candidates).toEqual(expect.arrayContaining(having));
          expect(candidates).toEqual(candidates.toSorted((left, right) => right - left));
          met.byIndex += having.length;
          met.leftOut += texts.length - candidates.length;
        }
        rows.rollback();
      },
    ),
    { numRuns: 1_500 },
  );
  rows.close();
  for (const [what, count] of Object.entries(met)) expect(count, `${what} was hardly met`).toBeGreaterThan(50);
});
