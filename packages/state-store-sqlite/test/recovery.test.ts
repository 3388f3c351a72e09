import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { openSqliteStore, recoverStore } from "@turnkeeper/state-store-sqlite";
import type { RecoveryProgress } from "@turnkeeper/state-store-sqlite";
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
import { suiteFolder, tempFolder } from "./temp-folder.ts";

const suite = suiteFolder();
const folder = tempFolder();
let healthy = "";

beforeAll(async () => {
  healthy = join(suite(), "healthy.db");
  await fillStore(healthy, 3, 12);
}, 60_000);

/** A copy of the healthy store for one test. */
function aCopy(): string {
  const path = join(folder(), "state.db");
  copyStore(healthy, path);
  return path;
}

function leavesOf(path: string, name: string): number[] {
  const database = new Database(path);
  const pages = database.prepare("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'").pluck().all(name);
  database.close();
  return pages as number[];
}

function destroy(path: string, pages: readonly number[]): void {
  for (const page of pages) overwrite(path, (page - 1) * pageSize, Buffer.alloc(pageSize));
}

/** A column of a store that nobody has open, as SQLite reads it. */
function column(path: string, sql: string): unknown[] {
  const database = new Database(path);
  const values = database.prepare(sql).pluck().all();
  database.close();
  return values;
}

/** Copies the files of a store as they lie on the disk while it is open: by another process, as every look at them. */
async function filesWhileOpen(to: string, turnCount = 6): Promise<void> {
  const path = join(folder(), "open.db");
  await fillStore(path, 2, turnCount, () => {
    for (const suffix of ["", "-wal"]) expect(spawnSync("cp", [`${path}${suffix}`, `${to}${suffix}`]).status).toBe(0);
  });
}

const codeOf = (error: unknown): unknown => (CodedError.is(error) ? error.code : error);

describe("recoverStore", () => {
  it("of a healthy store from whose search deleted sessions have yet to be taken loses nothing", async () => {
    const path = aCopy();
    const database = new Database(path);
    // Rows like the one of `store`, which counts the inputs: a number, and a number under it.
    database.exec("INSERT INTO search_gone (session_no) VALUES (901), (902), (903)");
    const inputSeq: unknown = database.prepare("SELECT last_input_seq FROM store").pluck().get();
    database.close();
    const outputPath = join(folder(), "new.db");
    const report = await recoverStore(path, { output: outputPath });
    expect(report).toMatchObject({ isComplete: true, refusedRows: [], unreadPages: [] });
    expect(column(outputPath, "SELECT last_input_seq FROM store")).toEqual([inputSeq]);
  });

  it("of a store that a later release wrote brings what it knows, and does not call that all", async () => {
    const path = aCopy();
    const database = new Database(path);
    database.pragma("user_version = 9999");
    database.close();
    const report = await recoverStore(path, { inspectOnly: true });
    expect(report).toMatchObject({ isComplete: false, refusedRows: [], mends: [] });
    expect(report.notes).toContainEqual(expect.stringMatching(/version 9999.*What a later one added is not brought/));
  });

  it(
    "works in a process of its own, tells how far it is, and names the output when it is whole",
    { timeout: 60_000 },
    async () => {
      const [source, output] = [aCopy(), join(folder(), "new.db")];
      destroy(source, [1, ...leavesOf(source, "entry").slice(1, 3)]);
      const before = hashes(source);
      const told: RecoveryProgress[] = [];
      const report = await recoverStore(source, { output }, { onProgress: (progress) => void told.push(progress) });
      expect(hashes(source)).toEqual(before);
      expect(new Set(told.map(({ stage }) => stage))).toEqual(new Set(["read", "verify"]));
      expect(report).toMatchObject({ output, isComplete: false, violations: [], source: { path: source, pageSize } });
      expect(report.unreadPages).toHaveLength(3);
      expect(report.missingEntries.length).toBeGreaterThan(0);
      expect(JSON.parse(JSON.stringify(report))).toEqual(report);
      expect(statSync(output).mode & 0o777).toBe(0o600);
      expect(readdirSync(folder()).toSorted()).toEqual(["new.db", "state.db"]);
      expect(await recoverStore(source, { output }).catch(codeOf)).toBe("STORE_UNAVAILABLE");
    },
  );

  it("refuses a store that a process has open, and names the process", { timeout: 60_000 }, async () => {
    const source = aCopy();
    const store = await openSqliteStore(source, { host: systemHost });
    const error: unknown = await recoverStore(source, { output: join(folder(), "new.db") }).catch(
      (one: unknown) => one,
    );
    await store.close();
    expect(codeOf(error)).toBe("STORE_BUSY");
    expect(error).toMatchObject({
      context: { pids: [process.pid] },
      message: expect.stringContaining(`pid ${process.pid}`),
    });
    expect(existsSync(join(folder(), "new.db"))).toBe(false);
  });

  it(
    "inspects without leaving anything, and a withdrawn recovery leaves nothing either",
    { timeout: 60_000 },
    async () => {
      const source = aCopy();
      const report = await recoverStore(source, { inspectOnly: true });
      expect(report).not.toHaveProperty("output");
      expect(report.isComplete).toBe(true);
      const controller = new AbortController();
      const onProgress = (): void => controller.abort(new Error("withdrawn"));
      const recovering = recoverStore(
        source,
        { output: join(folder(), "new.db") },
        { signal: controller.signal, onProgress },
      );
      await expect(recovering).rejects.toThrow("withdrawn");
      expect(readdirSync(folder())).toEqual(["state.db"]);
    },
  );
});

describe("a recovery is refused", () => {
  it("onto its source or a part of it, over a file that is there, and of what is no file", async () => {
    const source = aCopy();
    const refusals = [
      [source, source],
      [source, `${source}-wal`],
      [source, healthy],
      [folder(), join(folder(), "new.db")],
      [join(folder(), "nothing.db"), join(folder(), "new.db")],
    ] as const;
    for (const [from, to] of refusals) expect(await recoverHere(from, to).catch(codeOf)).toBe("STORE_UNAVAILABLE");
  });

  it("of a file that holds no row of a store", async () => {
    const source = join(folder(), "other.db");
    const database = new Database(source);
    database.exec("CREATE TABLE other (a, b, c); INSERT INTO other VALUES (1, 2, 3)");
    database.close();
    expect(await recoverHere(source, join(folder(), "new.db")).catch(codeOf)).toBe("STORE_CORRUPT");
    writeFileSync(source, "");
    expect(await recoverHere(source, join(folder(), "new.db")).catch(codeOf)).toMatch(/^STORE_/);
  });
});

describe("a recovery", () => {
  it("of a healthy store is complete, and has every row as it was", async () => {
    const output = join(folder(), "new.db");
    const report = await recoverHere(aCopy(), output);
    expect(report).toMatchObject({ isComplete: true, refusedRows: [], unreadPages: [], mends: [], violations: [] });
    for (const table of ["session", "lease", "turn", "input", "entry", "call"]) {
      const columns = column(healthy, `SELECT name FROM pragma_table_info('${table}') WHERE name <> 'call_no'`).join(
        ", ",
      );
      const sql = `SELECT json_array(${columns}) FROM ${table} ORDER BY 1`;
      expect(column(output, sql)).toEqual(column(healthy, sql));
    }
  });

  it("that lost pages of an index alone has lost nothing, and says which they were", async () => {
    const [source, output] = [aCopy(), join(folder(), "new.db")];
    const rows = placedRows(source);
    const pages = ["input_by_turn", "entry_by_turn", "sqlite_autoindex_entry_2"].flatMap((name) =>
      leavesOf(source, name).slice(0, 1),
    );
    for (const page of pages) overwrite(source, (page - 1) * pageSize, Buffer.alloc(pageSize, 0xee));
    const report = await recoverHere(source, output);
    expect(report).toMatchObject({ isComplete: true, mends: [], refusedRows: [] });
    expect(report.unreadPages.map(({ page }) => page).toSorted((a, b) => a - b)).toEqual(
      pages.toSorted((a, b) => a - b),
    );
    expect(missingRows(output, rows)).toEqual([]);
  });

  it("takes no row whose content is not what was stored, and says where it lies", async () => {
    const [source, output] = [aCopy(), join(folder(), "new.db")];
    const database = new Database(source);
    database.prepare("UPDATE entry SET body = replace(body, 'answer 5', 'answer 6') WHERE key = 'turn-5/answer'").run();
    database.close();
    const report = await recoverHere(source, output);
    expect(report.refusedRows).toHaveLength(3);
    expect(report.refusedRows[0]).toMatchObject({
      table: "entry",
      page: expect.any(Number),
      cell: expect.any(Number),
      reason: expect.stringContaining("digest"),
    });
    expect(column(output, "SELECT count(*) FROM entry WHERE key = 'turn-5/answer'")).toEqual([0]);
  });

  it("finds the ids of sessions whose rows are lost in their index, and what a list tells of them in their entries", async () => {
    const [source, output] = [aCopy(), join(folder(), "new.db")];
    const sql =
      "SELECT json_array(session_no, session_id, first_text, last_role, turn_count, tool_call_count, last_seq) FROM session ORDER BY 1";
    const ids = column(source, sql);
    destroy(source, leavesOf(source, "session"));
    const report = await recoverHere(source, output);
    expect(column(output, sql)).toEqual(ids);
    expect(report.mends.filter(({ detail }) => detail.includes("index"))).toHaveLength(3);
    expect(report.violations).toEqual([]);
  });

  it("never grants a token that was granted before, though every lease is lost", async () => {
    const [source, output] = [aCopy(), join(folder(), "new.db")];
    const tokens = column(source, "SELECT fencing_token FROM lease ORDER BY session_id") as number[];
    destroy(source, leavesOf(source, "lease"));
    await recoverHere(source, output);
    const kept = column(output, "SELECT fencing_token FROM lease ORDER BY session_id") as number[];
    expect(kept).toHaveLength(tokens.length);
    for (const [index, token] of kept.entries()) expect(token).toBeGreaterThanOrEqual(tokens[index] ?? 0);
  });

  it("rule 7.14: tells the next grant of the turns that it ended itself", async () => {
    const [source, output] = [aCopy(), join(folder(), "new.db")];
    const database = new Database(source);
    // A grant that left no trace of its own: the turn that runs is not under the lease that stands.
    database.exec("UPDATE lease SET fencing_token = fencing_token + 1 WHERE session_id = 'session-1'");
    database.exec("PRAGMA foreign_keys = OFF; DELETE FROM turn WHERE turn_id = 'turn-3' AND session_no = 2");
    database.close();
    const report = await recoverHere(source, output);
    expect(report.violations).toEqual([]);
    const store = await openSqliteStore(output, { host: systemHost });
    const told = async (sessionId: string): Promise<readonly unknown[]> => {
      const holder = { holderId: `next-${sessionId}`, instanceId: "next", host: "here", bootId: "boot", pid: 1 };
      const lease = await store.leases.read(sessionId);
      const reclaim = lease && { sessionId, holderId: lease.holder.holderId, fencingToken: lease.fencingToken };
      const granted = await store.leases.acquire({ sessionId, holder, ttlMs: 60_000, ...(reclaim ? { reclaim } : {}) });
      return granted.kind === "granted" ? (granted.predecessors ?? []).map(({ turnId }) => turnId) : [granted.kind];
    };
    expect(await told("session-1")).toEqual(["turn-13"]);
    // What made up a turn as answered left nothing behind.
    expect(await told("session-2")).toEqual([]);
    await store.close();
  });

  it("leaves a turn suspended that waits for approval, though it has no lease", async () => {
    const [source, output] = [aCopy(), join(folder(), "new.db")];
    const database = new Database(source);
    database.exec("UPDATE turn SET suspended_at_ms = started_at_ms WHERE outcome IS NULL");
    database.exec(
      `UPDATE lease SET holder_id = NULL, holder = NULL, ttl_ms = NULL, renew_count = NULL, expires_boot_id = NULL,
         expires_boot_ms = NULL, acquired_at_ms = NULL, expires_at_ms = NULL WHERE session_id = 'session-1'`,
    );
    database.close();
    await recoverHere(source, output);
    expect(column(output, "SELECT turn_id FROM turn WHERE outcome IS NULL")).toEqual(["turn-13"]);
  });

  it("does not bring back what was deleted, as long as the file tells which pages are free", async () => {
    const [source, output] = [aCopy(), join(folder(), "new.db")];
    const store = await openSqliteStore(source, { host: systemHost });
    expect(await store.sessions.delete("session-2")).toEqual({ kind: "deleted" });
    await store.close();
    await recoverHere(source, output);
    expect(column(output, "SELECT session_id FROM session ORDER BY 1")).toEqual(["session-1", "session-3"]);
    expect(column(output, "SELECT count(*) FROM entry")).toEqual(column(source, "SELECT count(*) FROM entry"));
  });

  it("puts messages of turns that nothing else is left of where they were said, by the order in which they were offered", async () => {
    for (const [first, last] of [
      [1, 3],
      [4, 6],
    ] as const) {
      const [source, output] = [aCopy(), join(folder(), `new-${first}.db`)];
      const database = new Database(source);
      const lost = Array.from({ length: last - first + 1 }, (_, index) => `'turn-${first + index}'`).join(", ");
      database.pragma("foreign_keys = OFF");
      for (const table of ["entry", "turn"])
        database.exec(`DELETE FROM ${table} WHERE turn_id IN (${lost}) AND session_no = 1`);
      database.close();
      const report = await recoverHere(source, output);
      expect(report.violations).toEqual([]);
      const order = column(
        output,
        "SELECT key FROM entry WHERE session_no = 1 AND key LIKE 'input/%' AND late = 0 ORDER BY seq",
      );
      expect(order).toEqual(Array.from({ length: 13 }, (_, index) => `input/input-${index + 1}`));
      for (const suffix of ["", "-reserve"]) rmSync(`${source}${suffix}`, { force: true });
    }
  });

  it("makes model context again of what a lost summary had replaced", async () => {
    const [source, output] = [aCopy(), join(folder(), "new.db")];
    const database = new Database(source);
    expect(database.prepare("SELECT count(*) FROM entry WHERE archived = 1").pluck().get()).toBeGreaterThan(0);
    database.prepare("DELETE FROM entry WHERE body ->> '$.role' = 'summary'").run();
    database.close();
    const report = await recoverHere(source, output);
    expect(column(output, "SELECT count(*) FROM entry WHERE archived = 1")).toEqual([0]);
    expect(report.mends.some(({ detail }) => detail.includes("model context"))).toBe(true);
  });
});

describe("a write-ahead log", () => {
  it("is enough by itself", async () => {
    const [source, output] = [join(folder(), "state.db"), join(folder(), "new.db")];
    await filesWhileOpen(source);
    copyStore(source, join(folder(), "twin.db"));
    const rows = placedRows(join(folder(), "twin.db"));
    expect(statSync(source).size).toBeLessThan(statSync(`${source}-wal`).size);
    rmSync(source);
    const report = await recoverHere(source, output);
    expect(report.source.walFrameCount).toBeGreaterThan(0);
    expect(missingRows(output, rows)).toEqual([]);
  });

  it("that is torn gives at least what SQLite itself would read", async () => {
    const [source, output] = [join(folder(), "state.db"), join(folder(), "new.db")];
    await filesWhileOpen(source);
    const { size } = statSync(`${source}-wal`);
    let rowCount = 0;
    for (const part of [0.35, 0.61, 0.97]) {
      const [torn, twin] = [join(folder(), "torn.db"), join(folder(), "twin.db")];
      copyStore(source, torn);
      truncate(`${torn}-wal`, Math.floor(size * part));
      copyStore(torn, twin);
      const rows = placedRows(twin);
      rowCount += rows.length;
      await recoverHere(torn, output);
      expect(missingRows(output, rows)).toEqual([]);
      for (const path of [torn, twin, output])
        for (const suffix of ["", "-wal", "-shm", "-reserve"]) rmSync(`${path}${suffix}`, { force: true });
    }
    expect(rowCount).toBeGreaterThan(100);
  });

  it("is read on behind a damaged frame, where SQLite stops", async () => {
    const [source, output] = [join(folder(), "state.db"), join(folder(), "new.db")];
    await filesWhileOpen(source);
    const frameByteCount = 24 + pageSize;
    const frameCount = Math.floor((statSync(`${source}-wal`).size - 32) / frameByteCount);
    overwrite(`${source}-wal`, 32 + Math.floor(frameCount / 2) * frameByteCount + 500, Buffer.from("damaged"));
    const report = await recoverHere(source, output);
    expect(report).toMatchObject({ isComplete: false, source: { damagedWalFrameCount: 1 }, violations: [] });
    expect(column(output, "SELECT count(*) FROM input WHERE input_id = 'waiting'")).toEqual([1]);
  });

  it("that lost its header is read all the same", async () => {
    const [source, output] = [join(folder(), "state.db"), join(folder(), "new.db")];
    await filesWhileOpen(source);
    overwrite(`${source}-wal`, 0, Buffer.alloc(32));
    const report = await recoverHere(source, output);
    expect(report.source.walFrameCount).toBeGreaterThan(0);
    expect(column(output, "SELECT count(*) FROM input WHERE input_id = 'waiting'")).toEqual([1]);
  });
});

it("a rollback journal that a crash left is applied first", async () => {
  const [source, output] = [aCopy(), join(folder(), "new.db")];
  const rows = placedRows(source);
  const script = `
    const database = new (require("better-sqlite3"))(${JSON.stringify(source)});
    database.pragma("journal_mode = delete");
    database.exec("PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE entry SET at_ms = at_ms + 1; UPDATE turn SET detail = hex(zeroblob(900))");
    process.kill(process.pid, "SIGKILL");`;
  spawnSync(process.execPath, ["-e", script], { cwd: import.meta.dirname });
  expect(statSync(`${source}-journal`).size).toBeGreaterThan(pageSize);
  await recoverHere(source, output);
  expect(missingRows(output, rows)).toEqual([]);
  expect(column(output, "PRAGMA journal_mode")).toEqual(["delete"]);
});

it("bytes of any kind end in a report or in a code of the store, and soon", { timeout: 60_000 }, async () => {
  const source = join(folder(), "hostile.db");
  const output = join(folder(), "new.db");
  const kinds = [0x02, 0x05, 0x0a, 0x0d];
  let reportCount = 0;
  const page = fc
    .tuple(fc.constantFrom(...kinds), fc.uint8Array({ minLength: 64, maxLength: 64 }), fc.nat({ max: 300 }))
    .map(([kind, bytes, cellCount]) => {
      const content = Buffer.alloc(pageSize);
      for (let at = 0; at < pageSize; at += bytes.length) content.set(bytes, at);
      content[0] = kind;
      content.writeUInt16BE(cellCount, 3);
      return content;
    });
  await fc.assert(
    fc
      .asyncProperty(fc.array(page, { minLength: 1, maxLength: 6 }), fc.boolean(), async (pages, isBesideRows) => {
        copyStore(healthy, source);
        // Beside real pages, or alone.
        const { size } = statSync(healthy);
        if (!isBesideRows) truncate(source, 0);
        overwrite(source, isBesideRows ? size : 0, Buffer.concat(pages));
        const answer = await recoverHere(source, output).catch((error: unknown) => error);
        if (answer instanceof Error && !CodedError.is(answer)) throw answer;
        if (answer instanceof Error) expect(codeOf(answer)).toMatch(/^STORE_/);
        else reportCount++;
      })
      .afterEach(() => {
        for (const suffix of ["", "-wal", "-shm", "-reserve", ".partial", ".partial-journal", ".partial-reserve"])
          rmSync(`${output}${suffix}`, { force: true });
      }),
    { numRuns: 25 },
  );
  expect(reportCount).toBeGreaterThan(3);
});
