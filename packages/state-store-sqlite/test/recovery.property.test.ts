import { rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import {
  copyStore,
  fillStore,
  hashes,
  missingRows,
  overwrite,
  pageSize,
  placedRows,
  recoverHere,
  truncate,
} from "./recovery-scene.ts";
import type { PlacedRow } from "./recovery-scene.ts";
import { holderOf } from "./scene.ts";
import { suiteFolder } from "./temp-folder.ts";

/** TURNKEEPER_DAMAGES=1000 for a long run by hand. */
const damageCount = Number(process.env["TURNKEEPER_DAMAGES"] ?? 30);

const folder = suiteFolder();
let healthy = "";
let pageCount = 0;
let rows: readonly PlacedRow[] = [];
let interior: readonly number[] = [];

beforeAll(async () => {
  healthy = join(folder(), "healthy.db");
  await fillStore(healthy, 4, 24);
  rows = placedRows(healthy);
  const database = new Database(healthy, { readonly: true });
  pageCount = database.pragma("page_count", { simple: true }) as number;
  interior = database.prepare("SELECT pageno FROM dbstat WHERE pagetype = 'internal'").pluck().all() as number[];
  database.close();
}, 60_000);

const reached = new Map<string, number>();
afterAll(() => {
  // Damage of every kind was met, or the property says less than it seems to.
  expect([...reached.keys()].toSorted()).toEqual(["flip", "garbage", "interior", "page-1", "truncation", "zeros"]);
});

type Damage =
  | { readonly kind: "zeros" | "garbage" | "flip"; readonly pages: readonly number[]; readonly seed: number }
  | { readonly kind: "truncation"; readonly part: number }
  | { readonly kind: "page-1" }
  | { readonly kind: "interior" };

const damages: fc.Arbitrary<Damage> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom("zeros" as const, "garbage" as const, "flip" as const),
      pages: fc.uniqueArray(fc.nat(), { minLength: 1, maxLength: 12 }),
      seed: fc.nat(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("truncation" as const),
      part: fc.double({ min: 0.05, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "page-1" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "interior" as const }) },
);

/** Bytes that a seed determines: a failing damage can be made again. */
function bytesOf(seed: number, count: number): Buffer {
  const bytes = Buffer.alloc(count);
  let state = (seed ^ 0x9e37_79b9) >>> 0 || 1;
  for (let at = 0; at < count; at++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[at] = state & 0xff;
  }
  return bytes;
}

/** Damages the file and answers the pages that are no longer what they were. */
function damage(path: string, what: Damage): Set<number> {
  reached.set(what.kind, (reached.get(what.kind) ?? 0) + 1);
  if (what.kind === "truncation") {
    const byteCount = Math.floor(what.part * pageCount * pageSize);
    truncate(path, byteCount);
    const whole = Math.floor(byteCount / pageSize);
    return new Set(Array.from({ length: pageCount - whole }, (_, index) => whole + 1 + index));
  }
  if (what.kind === "page-1" || what.kind === "interior") {
    const pages = what.kind === "page-1" ? [1] : interior;
    for (const page of pages) overwrite(path, (page - 1) * pageSize, Buffer.alloc(pageSize, 0x55));
    return new Set(pages);
  }
  const pages = new Set(what.pages.map((page) => 1 + (page % pageCount)));
  for (const page of pages) {
    const start = (page - 1) * pageSize;
    const random = bytesOf(what.seed + page, pageSize);
    if (what.kind === "flip")
      for (let index = 0; index < 8; index++)
        overwrite(path, start + (random.readUInt16LE(2 * index) % pageSize), random.subarray(100 + index, 101 + index));
    else overwrite(path, start, what.kind === "zeros" ? Buffer.alloc(pageSize) : random);
  }
  return pages;
}

async function continues(output: string): Promise<void> {
  const store = await openSqliteStore(output, { host: systemHost });
  const { sessions } = await store.sessions.list({ limit: 1000 });
  for (const { sessionId } of sessions) {
    const before = await store.sessions.records(sessionId);
    const lease = before?.lease;
    const answer = await store.leases.acquire({
      sessionId,
      holder: holderOf("next"),
      ttlMs: 1000,
      ...(lease ? { reclaim: { sessionId, holderId: lease.holder.holderId, fencingToken: lease.fencingToken } } : {}),
    });
    expect(answer).toMatchObject({ kind: "granted" });
    const token = answer.kind === "granted" ? answer.fencingToken : 0;
    expect(token).toBeGreaterThan(before?.fencingToken ?? 0);
    const grant = { sessionId, holderId: holderOf("next").holderId, fencingToken: token };
    await store.turns.begin(grant, "turn-next", []);
    const entries = [{ key: "next", body: { role: "notice" as const, text: "it goes on" } }];
    expect(await store.transcript.append({ grant, turnId: "turn-next", entries })).toMatchObject({ kind: "committed" });
  }
  await store.close();
}

it(
  "a recovery brings every row of the pages that were not damaged, tells what is missing, and never writes the source",
  { timeout: 60_000 + damageCount * 5000 },
  async () => {
    const [source, output] = [join(folder(), "damaged.db"), join(folder(), "recovered.db")];
    await fc.assert(
      fc
        .asyncProperty(damages, async (what) => {
          copyStore(healthy, source);
          const damaged = damage(source, what);
          const before = hashes(source);
          const report = await recoverHere(source, output);
          expect(hashes(source)).toEqual(before);
          const intact = rows.filter(({ pages }) => pages.every((page) => !damaged.has(page)));
          expect(missingRows(output, intact)).toEqual([]);
          expect(report.violations).toEqual([]);
          if (missingRows(output, rows).length > 0) expect(report.isComplete).toBe(false);
          await continues(output);
        })
        .afterEach(() => {
          for (const path of [source, output])
            for (const suffix of ["", "-wal", "-shm", "-reserve"]) rmSync(`${path}${suffix}`, { force: true });
          rmSync(`${output}.partial`, { force: true });
        }),
      { numRuns: damageCount, endOnFailure: true, ...(damageCount === 30 ? { seed: 20260801 } : {}) },
    );
  },
);
