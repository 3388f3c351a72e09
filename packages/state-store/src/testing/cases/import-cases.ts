/** Sessions that come from another store: all of it, as it was there, and nothing that runs. */
import assert from "node:assert/strict";
import { digestOf } from "../../json.ts";
import type { SessionRecords } from "../../session.ts";
import type { StateStore } from "../../state-store.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  ask,
  assertVerified,
  calls,
  changesNothing,
  contextKeys,
  finishes,
  holderOf,
  offered,
  recordsOf,
  refuses,
  runs,
  session,
  spoken,
  startTurn,
  take,
} from "../scene.ts";

/** Answers what the store has of the session, which it then has no more. */
async function takenOut(store: StateStore): Promise<SessionRecords> {
  const records = await recordsOf(store);
  assert.deepEqual(await store.sessions.delete(session), { kind: "deleted" });
  return records;
}

/** A session at rest: two turns, one summary, a name, an input that waits. Answers the grant of its last turn. */
async function atRest(store: StateStore): Promise<void> {
  await spoken(store);
  const [running] = await store.turns.running(session);
  assert.ok(running, "nothing runs");
  const { holder, fencingToken } = running.turn;
  await finishes(store, "b", { sessionId: session, holderId: holder.holderId, fencingToken });
  await offered(store, "c", "input-c", { settings: { instructions: "Name fruit." } });
  await store.inbox.abandon(session, "runner-c");
  await store.sessions.setTitle(session, "fruit and more");
}

export const importCases: readonly ConformanceCase[] = [
  {
    id: "SESSION-IMPORT",
    title: "an imported session is the one that was exported: numbers, keys, times, flags, title, sums, summaries",
    async run({ open, reopen, host }) {
      const first = await open();
      await atRest(first);
      const keys = await contextKeys(first);
      const records = await takenOut(first);
      assert.equal(records.compactionCount, 1);
      assert.equal(records.summaries.length, 1);
      await host.advance(5_000);
      const result = await first.sessions.importSession(records);
      assert.deepEqual(result, { kind: "imported", session: records.session });
      const store = await reopen();
      assert.deepEqual(await recordsOf(store), records);
      assert.deepEqual(await contextKeys(store), keys);
      await assertVerified(store);
      assert.deepEqual(
        (await store.transcript.search("plum")).hits.map(({ sessionId }) => sessionId),
        [session],
      );
    },
  },
  {
    id: "SESSION-IMPORT-b",
    title: "an imported session goes on: what waited is run, its basis still counts, its title is taken back",
    async run({ open }) {
      const store = await open();
      await atRest(store);
      const records = await takenOut(store);
      await store.sessions.importSession(records);
      const grant = await runs(store, "d", "input-c");
      assert.ok(grant.fencingToken > records.fencingToken, "LEASE-2: the token did not grow");
      const { entries, compactionCount } = await store.transcript.load(session);
      assert.equal(compactionCount, 1);
      const throughSeq = entries.at(-2)?.seq ?? 0;
      const applied = await store.transcript.applyCompaction({
        grant,
        turnId: "turn-d",
        basis: { throughSeq, compactionCount },
        summary: { key: "second", body: { role: "summary", text: "all of it" } },
      });
      assert.equal(applied.kind, "applied");
      assert.deepEqual(await contextKeys(store), ["second", "input/input-c"]);
      const later = await offered(store, "e", "input-e");
      assert.ok(later.seq > Math.max(...records.inputs.map(({ seq }) => seq)), "the queue was overtaken");
      await store.sessions.setTitle(session, "");
      assert.equal((await store.sessions.read(session))?.title, "text of input-a");
      await assertVerified(store);
    },
  },
  {
    id: "SESSION-IMPORT-c",
    title: "a turn that ran is settled as crashed, what waited has no runner, and nobody has the lease",
    async run({ open }) {
      const store = await open();
      const a = await startTurn(store, "a", { ttlMs: 1 });
      await store.transcript.append({ grant: a.grant, turnId: a.turnId, entries: [calls("asked", "call-1")] });
      await offered(store, "b", "input-b");
      const records = await recordsOf(store);
      assert.equal((await store.turns.settleForeign(a.grant)).kind, "settled");
      assert.deepEqual(await store.sessions.delete(session), { kind: "deleted" });
      assert.equal((await store.sessions.importSession(records)).kind, "imported");
      assert.equal(await store.leases.read(session), undefined);
      assert.deepEqual(await store.turns.running(session), []);
      const { inputs, turns, entries } = await recordsOf(store);
      const [turn] = turns;
      assert.equal(turn?.state === "ended" && turn.reason, "crashed");
      assert.deepEqual(
        inputs.map((input) => (input.state === "settled" ? input.end : input.state)),
        ["interrupted", "pending"],
      );
      assert.equal(entries.at(-1)?.body.role === "tool" && entries.at(-1)?.key, "turn-a/call-1/unknown");
      await assertVerified(store);
      // An orphan is run by whoever comes.
      await runs(store, "c", "input-b");
    },
  },
  {
    id: "SESSION-IMPORT-d",
    title: "a session that is there, and one whose lease somebody has, is left alone and told",
    async run({ open }) {
      const store = await open();
      await atRest(store);
      const records = await recordsOf(store);
      const exists = await changesNothing(store, () => store.sessions.importSession(records));
      assert.deepEqual(exists, { kind: "exists" });
      await takenOut(store);
      await take(store, "x");
      const held = await store.sessions.importSession(records);
      assert.equal(held.kind, "held");
      assert.equal(held.lease.holder.holderId, holderOf("x").holderId);
      assert.equal(await store.sessions.read(session), undefined);
    },
  },
  {
    id: "SESSION-IMPORT-e",
    title: "an imported session leaves this store's token standing: the next grant's is greater (LEASE-2)",
    async run({ open }) {
      const store = await open();
      await atRest(store);
      const records = await takenOut(store);
      const grants = [];
      for (const name of ["x", "y", "z"]) {
        const { grant } = await take(store, name);
        await store.leases.release(grant);
        grants.push(grant);
      }
      const before = grants.at(-1)?.fencingToken ?? 0;
      await store.sessions.importSession(records);
      const granted = await ask(store, "d");
      assert.equal(granted.kind, "granted");
      assert.ok(granted.fencingToken > before, `fencing token: ${granted.fencingToken} after ${before}`);
    },
  },
  {
    id: "SESSION-TOKENS",
    title: "every id that was granted has its token listed, deleted sessions too, page by page, in order",
    async run({ open, reopen }) {
      const store = await open();
      for (const [sessionId, count] of [
        ["b", 2],
        ["a", 1],
        ["é", 3],
        ["B", 1],
      ] as const)
        for (let grant = 0; grant < count; grant++)
          await store.leases.release((await take(store, `x#${grant}`, { sessionId })).grant);
      // Never granted, so it has no token to lose.
      await offered(store, "z", "input-z", { sessionId: "z" });
      assert.deepEqual(await store.sessions.delete("z"), { kind: "deleted" });
      await atRest(store);
      const { fencingToken } = await takenOut(store);
      const again = await reopen();
      const all = [
        { sessionId: "B", fencingToken: 1 },
        { sessionId: "a", fencingToken: 1 },
        { sessionId: "b", fencingToken: 2 },
        { sessionId: session, fencingToken },
        { sessionId: "é", fencingToken: 3 },
      ];
      assert.deepEqual(await again.sessions.tokens(), all);
      assert.deepEqual(await again.sessions.tokens({ limit: 2 }), all.slice(0, 2));
      assert.deepEqual(await again.sessions.tokens({ after: "a", limit: 2 }), all.slice(2, 4));
      assert.deepEqual(await again.sessions.tokens({ after: "é" }), []);
    },
  },
  {
    id: "SESSION-TOKENS-b",
    title: "a raised token is below every later grant, is never lowered, and takes no lease from anybody (LEASE-2)",
    async run({ open, reopen }) {
      const first = await open();
      assert.deepEqual(await first.sessions.raiseToken({ sessionId: session, fencingToken: 7 }), { kind: "stands" });
      assert.deepEqual(await first.sessions.raiseToken({ sessionId: session, fencingToken: 3 }), { kind: "stands" });
      const store = await reopen();
      const { grant } = await take(store, "a", { ttlMs: 1 });
      assert.equal(grant.fencingToken, 8);
      assert.equal((await store.sessions.raiseToken({ sessionId: session, fencingToken: 8 })).kind, "stands");
      const held = await store.sessions.raiseToken({ sessionId: session, fencingToken: 20 });
      assert.equal(held.kind === "held" && held.lease.holder.holderId, grant.holderId);
      await store.leases.release(grant);
      assert.equal((await store.sessions.raiseToken({ sessionId: session, fencingToken: 20 })).kind, "stands");
      assert.equal((await take(store, "b")).grant.fencingToken, 21);
    },
  },
  {
    id: "SESSION-IMPORT-f",
    title: "records with a fault are refused, naming it, and nothing of them is stored",
    async run({ open }) {
      const store = await open();
      await atRest(store);
      const records = await takenOut(store);
      const [first, ...others] = records.entries;
      const [input, ...waiting] = records.inputs;
      assert.ok(first && input, "nothing was said");
      const rotten = { ...first, body: { role: "user", text: "other" } } as const;
      const faults: readonly (readonly [string, Partial<SessionRecords>])[] = [
        ["content", { entries: [rotten, ...others] }],
        ["lost input", { entries: others }],
        ["order", { entries: [...others, first] }],
        ["twice", { entries: [...records.entries, { ...first, seq: 1000 }] }],
        ["token", { fencingToken: 0 }],
        ["input", { inputs: [{ ...input, digest: digestOf("other") }, ...waiting] }],
        ["stranger", { inputs: [{ ...input, sessionId: "session-2" }, ...waiting] }],
        ["no number", { session: { ...records.session, revision: Number.NaN } }],
        ["no text", { inputs: [{ ...input, inputId: "\ud800" }, ...waiting] }],
        ["summary", { summaries: [...records.summaries, { seq: 999, throughSeq: 1 }] }],
      ];
      for (const [, fault] of faults) {
        await refuses(store, "STORE_CONTRACT", () => store.sessions.importSession({ ...records, ...fault }));
        assert.equal(await store.sessions.read(session), undefined);
      }
      assert.equal((await store.sessions.importSession(records)).kind, "imported");
    },
  },
];
