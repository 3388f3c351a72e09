import { virtualHost } from "@turnkeeper/kernel/testing";
import { createMemoryStore, digestOf, verifyRecords } from "@turnkeeper/state-store";
import type { Entry, EntryBody, Grant, SessionRecords, StateStore, TurnRecord } from "@turnkeeper/state-store";
import { beforeEach, describe, expect, test } from "vitest";

const sessionId = "session-1";
const host = virtualHost();
const identity = { instanceId: "instance-1", host: "host-1", bootId: "boot-1", pid: 101 };

/** Runs a turn with a text, an answered call and an open one, up to where it would end. */
async function playTurn(store: StateStore, name: string): Promise<Grant> {
  const runner = { ...identity, runnerId: `runner-${name}` };
  await store.inbox.offer({ sessionId, inputId: `input-${name}`, text: "hello", onBusy: "wait", runner });
  const holder = { ...identity, holderId: `holder-${name}` };
  const begin = { turnId: `turn-${name}`, runnerId: runner.runnerId };
  const granted = await store.leases.acquire({ sessionId, holder, ttlMs: 60_000, begin });
  if (granted.kind !== "granted") throw new Error(`not granted: ${granted.kind}`);
  const grant = { sessionId, holderId: holder.holderId, fencingToken: granted.fencingToken };
  const call = (callId: string) => ({ type: "tool-call", callId, name: "shell", input: {} }) as const;
  const entries = [
    { key: `${name}-calls`, body: { role: "assistant", parts: [call("call-1"), call("call-2")] } },
    { key: `${name}-result`, body: { role: "tool", callId: "call-1", name: "shell", status: "ok", output: "done" } },
  ] as const;
  await store.transcript.append({ grant, turnId: begin.turnId, entries });
  return grant;
}

describe("the records of a session", () => {
  let records: SessionRecords;
  let store: StateStore;

  const read = async (): Promise<SessionRecords> => {
    const found = await store.sessions.records(sessionId);
    if (!found) throw new Error("no records");
    return found;
  };

  beforeEach(async () => {
    store = createMemoryStore({ host });
    const grant = await playTurn(store, "a");
    await store.turns.end({ grant, turnId: "turn-a", outcome: "answered", release: true });
    await playTurn(store, "b");
    records = await read();
  });

  /** What is found when the records are read as `doctored`: the rules, in order, with what is said of each. */
  const found = (doctored: Partial<SessionRecords>) =>
    verifyRecords({ ...records, ...doctored }).map(({ rule, detail }) => `${rule} ${detail}`);
  const onlyDerived = [
    expect.stringMatching(/^DERIVED .* entry count/),
    expect.stringMatching(/^DERIVED .* last entry/),
  ];
  const entriesWith = (key: string, change: Partial<Entry>) =>
    records.entries.map((entry) => (entry.key === key ? { ...entry, ...change } : entry));
  const withBody = (key: string, body: EntryBody) => entriesWith(key, { body, digest: digestOf(body) });
  const entriesWithout = (key: string) => records.entries.filter((entry) => entry.key !== key);
  const turnsWith = (turnId: string, change: Partial<TurnRecord>) =>
    records.turns.map((turn) => (turn.turnId === turnId ? ({ ...turn, ...change } as TurnRecord) : turn));

  test("are clean as a store gives them: while a turn runs, after it ended, after it was settled", async () => {
    expect(verifyRecords(records)).toEqual([]);
    expect(records.turns.map((turn) => turn.state)).toEqual(["ended", "running"]);
    await store.turns.settleForeign({ sessionId, holderId: "holder-b", fencingToken: records.fencingToken });
    expect(verifyRecords(await read())).toEqual([]);
  });

  test("name the session in every violation", () => {
    const [violation] = verifyRecords({ ...records, entries: entriesWith("a-result", { digest: "0" }) });
    expect(violation?.session).toBe(sessionId);
  });

  test("show an entry whose content is not what was stored (APPEND-3)", () => {
    const flipped = { role: "tool", callId: "call-1", name: "shell", status: "ok", output: "dont" } as const;
    expect(found({ entries: entriesWith("a-result", { body: flipped }) })).toEqual([
      expect.stringMatching(/^APPEND-3 entry a-result/),
    ]);
  });

  test("show an entry out of order, and one of a turn that does not exist (APPEND-2)", () => {
    expect(found({ entries: entriesWith("a-result", { seq: 1 }) })).toEqual([
      expect.stringMatching(/^APPEND-2 entry a-result \(seq 1\) does not follow seq/),
    ]);
    expect(found({ turns: records.turns.filter((turn) => turn.turnId !== "turn-a") })).toContainEqual(
      expect.stringMatching(/^APPEND-2 entry a-calls \(seq 2\) belongs to turn turn-a/),
    );
  });

  test("show a call of an ended turn without a result, and none in a turn that runs (PAIR-1)", () => {
    expect(found({ entries: entriesWithout("a-result") })).toEqual([
      expect.stringMatching(/^PAIR-1 tool call .*call-1.* has 0 results/),
    ]);
    expect(found({ entries: entriesWithout("b-result") })).toEqual(onlyDerived.slice(1));
  });

  test("show a second result, a second call of one id, and a result without a call before it (PAIR-1)", () => {
    const closing =
      records.entries.find(({ key, turnId }) => turnId === "turn-a" && key.endsWith("unknown"))?.key ?? "";
    const again: EntryBody = { role: "tool", callId: "call-1", name: "shell", status: "ok", output: "again" };
    expect(found({ entries: withBody(closing, again) })).toEqual([
      expect.stringMatching(/^PAIR-1 tool call .*call-1.* has 2 results/),
      expect.stringMatching(/^PAIR-1 tool call .*call-2.* has 0 results/),
    ]);
    const call = { type: "tool-call", callId: "call-1", name: "shell", input: {} } as const;
    expect(found({ entries: withBody("a-calls", { role: "assistant", parts: [call, call] }) })).toContainEqual(
      expect.stringMatching(/^PAIR-1 tool call call-1 of turn turn-a is stored twice/),
    );
    expect(found({ entries: entriesWithout("a-calls") })).toContainEqual(
      expect.stringMatching(/^PAIR-1 result for tool call call-1 of turn turn-a has no call before it/),
    );
  });

  test("do not count a result that came late (PAIR-1)", () => {
    const body: EntryBody = { role: "tool", callId: "call-1", name: "shell", status: "ok", output: "too late" };
    const seq = (records.entries.at(-1)?.seq ?? 0) + 1;
    const facts = { seq, turnId: "turn-a", atMs: 0, archived: false };
    const late: Entry = { ...facts, key: "late", body, digest: digestOf(body), late: true };
    expect(found({ entries: [...records.entries, late] })).toEqual(onlyDerived);
    expect(found({ entries: [...records.entries, { ...late, late: false }] })).not.toEqual([]);
  });

  test("show an input whose turn does not exist, or ended without settling it, or that ended without a turn (INBOX-1)", () => {
    const [settled, taken] = records.inputs;
    if (settled?.state !== "settled" || taken?.state !== "taken") throw new Error("not as played");
    expect(found({ inputs: [{ ...settled, turnId: "turn-x" }, taken] })).toEqual([
      "INBOX-1 input input-a (seq 1) was taken by turn turn-x, which does not exist",
      "INBOX-1 input input-a (seq 1) was taken by turn turn-x, and is in turn turn-a at seq 1",
    ]);
    expect(found({ inputs: [settled, { ...taken, turnId: "turn-a" }] })).toEqual([
      "INBOX-1 turn turn-a ended as answered and left input input-b (seq 2) unsettled",
      "INBOX-1 input input-b (seq 2) was taken by turn turn-a, and is in turn turn-b at seq 5",
    ]);
    const { turnId: _turnId, ...without } = settled;
    expect(found({ inputs: [without, taken] })).toEqual([
      "INBOX-1 input input-a (seq 1) ended as answered without a turn",
      "INBOX-1 input input-a (seq 1) is settled without a turn, and is in turn turn-a at seq 1",
    ]);
    for (const end of ["cancelled", "expired"] as const)
      expect(found({ inputs: [{ ...without, inputId: "input-c", end }, taken] })).toEqual([]);
  });

  test("show an input whose user entry is missing, one that is there twice, one that stands twice, and two in one place (INBOX-1, INBOX-2)", () => {
    const [settled, taken] = records.inputs;
    if (!settled || !taken) throw new Error("not as played");
    expect(found({ entries: entriesWithout("input/input-a") })).toEqual([
      "INBOX-1 input input-a (seq 1) was taken by turn turn-a, and its user entry is missing",
    ]);
    expect(found({ entries: withBody("b-calls", { role: "user", text: "hello", inputId: "input-b" }) })).toContainEqual(
      "INBOX-1 input input-b reached the transcript twice, at seq 5 and 6",
    );
    expect(found({ inputs: [settled, settled, taken] })).toEqual(["INBOX-2 input input-a stands twice"]);
    expect(found({ inputs: [settled, { ...taken, seq: settled.seq }] })).toEqual([
      "INBOX-1 input input-b has the place of input input-a in the queue: seq 1",
    ]);
    expect(found({ inputs: [{ ...settled, text: "other" }, taken] })).toEqual([
      "INBOX-2 input input-a (seq 1) no longer has the text it was accepted with",
    ]);
  });

  test("show a key and a turn id that stand twice (APPEND-2, LEASE-1)", () => {
    expect(found({ entries: entriesWith("b-result", { key: "a-result" }) })).toEqual([
      expect.stringMatching(/^APPEND-2 entry a-result \(seq 7\) has the key of the entry at seq 3/),
    ]);
    expect(found({ turns: [...records.turns, ...records.turns.slice(0, 1)] })).toEqual([
      "LEASE-1 a turn id stands twice",
    ]);
  });

  test("show a summary that is missing, what it replaced and is not archived, and more summaries than compactions (COMP-1)", () => {
    const summaries = [{ seq: 99, throughSeq: 2 }];
    expect(found({ summaries, compactionCount: 1 })).toEqual([
      expect.stringMatching(/^COMP-1 entry input\/input-a \(seq 1\) stands before seq 2, .* not archived/),
      expect.stringMatching(/^COMP-1 entry a-calls \(seq 2\) stands before seq 2/),
      "COMP-1 the summary at seq 99, in place of all up to seq 2, is missing",
    ]);
    expect(found({ summaries })).toContainEqual("COMP-1 1 summaries stand in a transcript of 0 compactions");
  });

  test("show what is derived from the entries and contradicts them (DERIVED)", () => {
    const { session } = records;
    const { title: _title, lastEntry: _lastEntry, ...bare } = session;
    expect(found({ session: { ...session, entryCount: 6 } })).toEqual([
      "DERIVED the session's row has the entry count 6, and its entries say 7",
    ]);
    expect(found({ session: { ...session, totals: { ...session.totals, toolCallCount: 0 } } })).toEqual([
      expect.stringMatching(
        /^DERIVED the session's row has the sums .*"toolCallCount":0.*, and its entries say .*"toolCallCount":4/,
      ),
    ]);
    expect(found({ session: bare })).toEqual([
      expect.stringMatching(/^DERIVED the session's row has the last entry null/),
      `DERIVED the session's row has the title "", and its entries say "hello"`,
    ]);
  });

  test("show a token that fell from one entry to the next, and one above the greatest granted (LEASE-2)", () => {
    expect(found({ fencingToken: 1 })).toEqual([
      expect.stringMatching(/^LEASE-2 turn turn-b has fencing token 2, above the greatest granted \(1\)/),
    ]);
    expect(found({ turns: turnsWith("turn-a", { fencingToken: 3 }), fencingToken: 3 })).toContainEqual(
      expect.stringMatching(
        /^LEASE-2 entry input\/input-b \(seq 5\) was written under fencing token 2, after one under 3/,
      ),
    );
  });

  test("show a turn that runs without the lease, and turns that run at once (LEASE-1)", () => {
    const { lease, ...free } = records;
    expect(lease).toBeDefined();
    const without = verifyRecords(free).map(({ rule, detail }) => `${rule} ${detail}`);
    expect(without).toEqual(["LEASE-1 turn turn-b runs under fencing token 2, which holds no lease"]);
    expect(found({ turns: turnsWith("turn-a", { state: "running", fencingToken: 2 }) })).toEqual([
      expect.stringMatching(/^LEASE-1 turns turn-a and turn-b run at once/),
    ]);
  });
});
