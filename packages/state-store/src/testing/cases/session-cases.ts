/** Sessions as a whole: listing, reading everything, forgetting, and the end of a store. */
import assert from "node:assert/strict";
import type { StateStore } from "../../state-store.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertGrew,
  ask,
  assertVerified,
  changesNothing,
  finishes,
  holderOf,
  calls,
  offered,
  offerOf,
  recordsOf,
  rejectsWith,
  results,
  says,
  session,
  startTurn,
  take,
} from "../scene.ts";

export const sessionCases: readonly ConformanceCase[] = [
  {
    id: "SESSION-NOW",
    title: "the store tells the time that it stamps: an age is counted by its clock",
    async run({ open, host }) {
      const store = await open();
      const beforeMs = await store.sessions.nowMs();
      const input = await offered(store, "a", "input-1");
      await host.advance(2_500);
      const nowMs = await store.sessions.nowMs();
      assert.equal(input.offeredAtMs, beforeMs);
      assert.equal(nowMs - input.offeredAtMs, 2_500);
    },
  },
  {
    id: "SESSION-LIST",
    title: "sessions are listed most recently changed first, an offer and an append being changes",
    async run({ open, host }) {
      const store = await open();
      assert.deepEqual(await store.sessions.list(), { sessions: [] });
      const listed = async () => (await store.sessions.list()).sessions.map((record) => record.sessionId);
      for (const sessionId of ["one", "two", "three"]) {
        await offered(store, "a", "input-1", { sessionId });
        await host.advance(10);
      }
      assert.deepEqual(await listed(), ["three", "two", "one"]);
      await offered(store, "a", "input-2", { sessionId: "two" });
      await host.advance(10);
      assert.deepEqual(await listed(), ["two", "three", "one"]);
      const { grant, granted } = await take(store, "a", {
        sessionId: "one",
        begin: { turnId: "turn-1", runnerId: "runner-a" },
      });
      await store.transcript.append({ grant, turnId: granted.input?.turnId ?? "", entries: [says("said", "hi")] });
      assert.deepEqual(await listed(), ["one", "two", "three"]);
      const [first] = (await store.sessions.list()).sessions;
      assert.deepEqual(first, await store.sessions.read("one"));
      assertGrew("time of change", first?.createdAtMs, first?.updatedAtMs);
      assert.equal(first?.entryCount, 2);
    },
  },
  {
    id: "SESSION-LIST-b",
    title: "pages hold every session once, whatever the page size; the last page has no cursor",
    async run({ open, host }) {
      const store = await open();
      const names = Array.from({ length: 7 }, (_, index) => `session.${index}-x_${index}`);
      for (const [index, sessionId] of names.entries()) {
        await offered(store, "a", "input-1", { sessionId });
        // Some share their moment.
        if (index % 3 === 0) await host.advance(10);
      }
      const whole = (await store.sessions.list()).sessions.map((record) => record.sessionId);
      assert.deepEqual(whole.toSorted(), names);
      for (const limit of [1, 2, 3, 6, 7, 8]) {
        const seen: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await store.sessions.list(cursor === undefined ? { limit } : { limit, cursor });
          assert.ok(
            page.sessions.length > 0 && page.sessions.length <= limit,
            `a page of ${limit} had ${page.sessions.length}`,
          );
          seen.push(...page.sessions.map((record) => record.sessionId));
          cursor = page.nextCursor;
        } while (cursor !== undefined);
        assert.deepEqual(seen, whole, `page size ${limit}`);
      }
    },
  },
  {
    id: "SESSION-RECORDS",
    title:
      "records hold everything of a session: lease, greatest token, inputs, turns, and every entry in order of appending",
    async run({ open, reopen }) {
      const first = await open();
      assert.equal(await first.sessions.records(session), undefined);
      assert.equal(await first.sessions.read(session), undefined);
      const a = await startTurn(first, "a");
      await finishes(first, "a", a.grant);
      await offered(first, "c", "input-c");
      await first.inbox.withdraw(session, "input-c", "expired");
      const b = await startTurn(first, "b");
      await first.transcript.append({ grant: b.grant, turnId: b.turnId, entries: [says("said", "hi")] });
      const store = await reopen();
      const records = await recordsOf(store);
      assert.deepEqual(records.session, await store.sessions.read(session));
      assert.equal(records.fencingToken, b.grant.fencingToken);
      assert.deepEqual(records.lease, await store.leases.read(session));
      assert.equal(records.lease?.holder.holderId, holderOf("b").holderId);
      assert.deepEqual(
        records.inputs.map((input) => [input.inputId, input.state]),
        [
          ["input-a", "settled"],
          ["input-c", "settled"],
          ["input-b", "taken"],
        ],
      );
      assert.deepEqual(
        records.turns.map((turn) => [turn.turnId, turn.state]),
        [
          ["turn-a", "ended"],
          ["turn-b", "running"],
        ],
      );
      assert.deepEqual(records.entries, (await store.transcript.load(session, { all: true })).entries);
      await finishes(store, "b", b.grant);
      assert.equal((await recordsOf(store)).lease, undefined);
      await assertVerified(store);
    },
  },
  {
    id: "SESSION-RECORDS-b",
    title: "records without entries hold all the rest, of the same state",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await store.transcript.append({ grant, turnId, entries: [says("said", "hi")] });
      assert.deepEqual(await store.sessions.records(session, { withoutEntries: true }), {
        ...(await recordsOf(store)),
        entries: [],
      });
      assert.equal(await store.sessions.records("session-2", { withoutEntries: true }), undefined);
    },
  },
  {
    id: "SESSION-TITLE",
    title:
      "a session is called by its first message on one line, until it is named, and again when its name is taken back",
    async run({ open, reopen, host }) {
      const first = await open();
      const titleOf = async (store: StateStore) => (await store.sessions.read(session))?.title;
      assert.deepEqual(await first.sessions.setTitle(session, "nobody"), { kind: "unknown" });
      await offered(first, "a", "input-a", { text: "  Fix the\n build,\tplease \u0007 " });
      assert.equal(await titleOf(first), undefined);
      const { grant } = await take(first, "a", { begin: { turnId: "turn-a", runnerId: "runner-a" } });
      const turn = { grant, turnId: "turn-a" };
      assert.equal(await titleOf(first), "Fix the build, please");
      const more = { key: "more", body: { role: "user", text: "something else" } } as const;
      await first.transcript.append({ ...turn, entries: [more] });
      const store = await reopen();
      assert.equal(await titleOf(store), "Fix the build, please");
      const before = await store.sessions.read(session);
      await host.advance(10);
      assert.deepEqual(await store.sessions.setTitle(session, ` ${"long ".repeat(40)}`), { kind: "set" });
      const after = await store.sessions.read(session);
      assert.equal(after?.title, `${"long ".repeat(15)}long…`);
      assertGrew("time of change", before?.updatedAtMs, after?.updatedAtMs);
      assert.equal(after?.revision, before?.revision);
      assert.deepEqual(await store.sessions.setTitle(session, "other", { ifUnnamed: true }), { kind: "named" });
      assert.deepEqual((await store.sessions.read(session))?.title, after?.title);
      await store.sessions.setTitle(session, "😀".repeat(100));
      assert.equal(await titleOf(store), `${"😀".repeat(79)}…`);
      await store.sessions.setTitle(session, " \n");
      assert.equal(await titleOf(store), "Fix the build, please");
      assert.deepEqual(await store.sessions.setTitle(session, "named at last", { ifUnnamed: true }), { kind: "set" });
      assert.equal(await titleOf(store), "named at last");
    },
  },
  {
    id: "SESSION-TOTALS",
    title: "a session tells its last entry, and the sums of its turns, tool calls and tokens, each step counted once",
    async run({ open, reopen, host }) {
      const first = await open();
      await offered(first, "a", "input-a");
      const none = { turnCount: 0, toolCallCount: 0, inputTokens: 0, outputTokens: 0 };
      const fresh = await first.sessions.read(session);
      assert.deepEqual(fresh?.totals, none);
      assert.equal(fresh?.lastEntry, undefined);
      const { grant } = await take(first, "a", { begin: { turnId: "turn-a", runnerId: "runner-a" } });
      const turn = { grant, turnId: "turn-a" };
      assert.deepEqual((await first.sessions.read(session))?.lastEntry, { atMs: host.clock.wallMs(), role: "user" });
      const call = (callId: string, name: string) => ({ type: "tool-call", callId, name, input: {} }) as const;
      const usage = { inputTokens: 100, cachedInputTokens: 50, outputTokens: 7 };
      const step = {
        ...turn,
        entries: [
          { key: "one", body: { role: "assistant", parts: [call("call-1", "shell"), call("call-2", "fetch")], usage } },
        ],
      } as const;
      await first.transcript.append(step);
      await first.transcript.append(step);
      const store = await reopen();
      assert.deepEqual((await store.sessions.read(session))?.lastEntry, {
        atMs: host.clock.wallMs(),
        role: "assistant",
        toolName: "fetch",
      });
      await host.advance(10);
      const odd = { inputTokens: 0.5, outputTokens: -3 };
      await store.transcript.append({
        ...turn,
        entries: [
          results("two", "call-1"),
          { key: "three", body: { role: "assistant", parts: [], usage: odd } },
          { key: "four", body: { role: "assistant", parts: [], usage: { outputTokens: 3 } } },
        ],
      });
      await finishes(store, "a", grant);
      const { session: record } = await recordsOf(store);
      // The call that was left open has got its result, which is the last entry.
      assert.deepEqual(record.lastEntry, { atMs: host.clock.wallMs(), role: "tool", toolName: "fetch" });
      assert.deepEqual(record.totals, { turnCount: 1, toolCallCount: 2, inputTokens: 100, outputTokens: 10 });
      assert.deepEqual((await store.sessions.list()).sessions, [record]);
    },
  },
  {
    id: "SESSION-DELETE",
    title: "a deleted session is gone from every read, and may be made again",
    async run({ open, reopen }) {
      const first = await open();
      const { grant, turnId } = await startTurn(first, "a");
      await first.transcript.append({ grant, turnId, entries: [says("said", "something")] });
      await finishes(first, "a", grant);
      await offered(first, "b", "input-b");
      await offered(first, "a", "input-1", { sessionId: "session-2" });
      assert.deepEqual(await first.sessions.delete(session), { kind: "deleted" });
      const store = await reopen();
      assert.equal(await store.sessions.read(session), undefined);
      assert.equal(await store.sessions.records(session), undefined);
      assert.deepEqual(await store.transcript.load(session, { all: true }), {
        entries: [],
        revision: 0,
        compactionCount: 0,
      });
      assert.deepEqual(await store.transcript.search("something"), { hits: [] });
      assert.deepEqual(await store.inbox.pending(session), []);
      assert.equal(await store.inbox.read(session, "input-a"), undefined);
      assert.equal(await store.turns.read(session, turnId), undefined);
      const listed = (await store.sessions.list()).sessions.map((record) => record.sessionId);
      assert.deepEqual(listed, ["session-2"]);
      assert.deepEqual(await store.sessions.delete(session), { kind: "unknown" });
      await startTurn(store, "a");
      await assertVerified(store);
    },
  },
  {
    id: "SESSION-DELETE-b",
    title: "a deleted session leaves its token behind: the next grant's is greater (LEASE-2)",
    async run({ open, reopen, host }) {
      for (const isLapsed of [false, true]) {
        const first = await open();
        const { grant } = await startTurn(first, "a", { ttlMs: 5_000 });
        if (isLapsed) await host.advance(5_000);
        else await finishes(first, "a", grant);
        assert.deepEqual(await first.sessions.delete(session), { kind: "deleted" });
        const store = await reopen();
        assert.equal((await changesNothing(store, () => store.leases.release(grant))).kind, "stale");
        assert.equal((await changesNothing(store, () => store.leases.renew(grant, 5_000))).kind, "lost");
        const next = await startTurn(store, "a");
        assertGrew("fencing token", grant.fencingToken, next.grant.fencingToken);
        // What a turn left running outlives its session.
        assert.equal(next.granted.predecessors?.length, isLapsed ? 1 : undefined);
        assert.equal((await recordsOf(store)).fencingToken, next.grant.fencingToken);
      }
    },
  },
  {
    id: "SESSION-UNCHANGED",
    title:
      "sessions that nobody has used since are found by their prefix, page by page, and deleted only while it is so",
    async run({ open, host }) {
      const store = await open();
      const ids = ["kept-b", "kept-a", "kept-c", "kepu", "other"];
      for (const sessionId of ids) {
        await offered(store, "a", "input-1", { sessionId });
        await store.inbox.withdraw(sessionId, "input-1", "expired");
      }
      await host.advance(10_000);
      const sinceMs = (await store.sessions.nowMs()) - 5_000;
      await host.advance(10_000);
      await offered(store, "a", "input-2", { sessionId: "kept-c" });
      const find = (limit: number, after?: string) =>
        store.sessions.unchanged({ prefix: "kept-", sinceMs, limit, ...(after === undefined ? {} : { after }) });
      assert.deepEqual(await find(10), ["kept-a", "kept-b"]);
      assert.deepEqual(await find(1), ["kept-a"]);
      assert.deepEqual(await find(1, "kept-a"), ["kept-b"]);
      assert.deepEqual(await find(1, "kept-b"), []);
      const remove = (sessionId: string, ifUnchangedSinceMs: number) =>
        changesNothing(store, () => store.sessions.delete(sessionId, { ifUnchangedSinceMs }), sessionId);
      assert.deepEqual(await remove("kept-c", sinceMs), { kind: "in-use" });
      // However old: what waits is somebody's.
      const nowMs = await store.sessions.nowMs();
      assert.deepEqual(await remove("kept-c", nowMs), { kind: "in-use" });
      assert.deepEqual(await remove("kept-none", nowMs), { kind: "unknown" });
      assert.deepEqual(await store.sessions.delete("kept-a", { ifUnchangedSinceMs: sinceMs }), { kind: "deleted" });
      const { grant, turnId } = await startTurn(store, "a", { ttlMs: 5_000 });
      await store.transcript.append({ grant, turnId, entries: [calls("step", "call-1")] });
      await store.turns.suspend({ grant, turnId, callIds: ["call-1"] });
      assert.deepEqual(await remove(session, await store.sessions.nowMs()), { kind: "in-use" });
      assert.deepEqual(await find(10), ["kept-b"]);
    },
  },
  {
    id: "SESSION-DELETE-c",
    title: "a session that is held is left alone, and its holder told",
    async run({ open }) {
      const store = await open();
      const { grant } = await startTurn(store, "a");
      const answer = await changesNothing(store, () => store.sessions.delete(session));
      assert.equal(answer.kind === "held" && answer.lease.holder.holderId, grant.holderId);
    },
  },
  {
    id: "SESSION-DELETE-d",
    title: "a session whose lease is of another boot counts as held",
    needs: "boot-clock",
    async run({ open, reopen, host }) {
      const { grant } = await startTurn(await open(), "a", { ttlMs: 5_000 });
      host.reboot();
      const store = await reopen();
      await host.advance(10_000_000);
      const answer = await changesNothing(store, () => store.sessions.delete(session));
      assert.equal(answer.kind === "held" && answer.lease.standing, "other-boot");
      await store.turns.settleForeign(grant);
      assert.deepEqual(await store.sessions.delete(session), { kind: "deleted" });
    },
  },
  {
    id: "SESSION-CHECK",
    title: "a check of a store that can be written to says nothing and changes nothing",
    async run({ open }) {
      const store = await open();
      await startTurn(store, "a");
      assert.equal(await changesNothing(store, () => store.check()), undefined);
    },
  },
  {
    id: "SESSION-CLOSED",
    title: "a closed store rejects every call with STORE_CLOSED and does not reopen; to close it again is safe",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await store.close();
      await store.close();
      const calls: (() => Promise<unknown>)[] = [
        () => store.check(),
        () => store.sessions.read(session),
        () => store.sessions.list(),
        () => store.sessions.records(session),
        () => store.sessions.setTitle(session, "a title"),
        () => store.sessions.delete(session),
        () => store.leases.read(session),
        () => store.leases.renew(grant, 1_000),
        () => store.leases.release(grant),
        () => ask(store, "b"),
        () => store.transcript.load(session),
        () => store.transcript.search("text"),
        () => store.transcript.search(""),
        () => store.transcript.append({ grant, turnId, entries: [says("said", "late")] }),
        () => store.inbox.offer(offerOf("a", "input-2")),
        () => store.inbox.read(session, "input-a"),
        () => store.inbox.pending(session),
        () => store.inbox.takeSteers(grant, turnId),
        () => store.inbox.withdraw(session, "input-a", "cancelled"),
        () => store.inbox.abandon(session, "runner-a"),
        () => store.turns.begin(grant, turnId, []),
        () => store.turns.end({ grant, turnId, outcome: "answered", release: true }),
        () => store.turns.settleForeign(grant),
        () => store.turns.read(session, turnId),
        () => store.turns.running(),
        () => store.turns.requestStop(session, { hard: false, reason: "user-stop", by: "cli" }),
        () => store.turns.stopRequest(session, turnId),
      ];
      for (const call of calls) await rejectsWith("STORE_CLOSED", call);
      const again = await reopen();
      assert.equal((await again.turns.read(session, turnId))?.state, "running");
      assert.equal(await again.inbox.read(session, "input-2"), undefined);
    },
  },
];
