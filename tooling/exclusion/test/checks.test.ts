import { virtualHost } from "@turnkeeper/kernel/testing";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { Grant, Holder, MemoryStore, SessionRecords } from "@turnkeeper/state-store";
import { expect, test } from "vitest";
import { leaseBounds, sessionId } from "../src/bounds.ts";
import { violationsOf } from "../src/checks.ts";
import { lateEffectCount } from "../src/effect-checks.ts";
import type { Fact, SignalSent, WorkerEvent } from "../src/history.ts";
import { RecordIndex } from "../src/record-index.ts";
import { announcing, reporting } from "../src/written-entry.ts";

const second = 1e9;

/** A history that is right in every respect, by two processes, for the tests to spoil: w2 takes over from w1, which is stopped. */
const facts = {
  first: {
    worker: "w1",
    atNs: 1 * second,
    event: "granted",
    fencingToken: 1,
    turnId: "t1",
    inputId: "i1",
    askedNs: 0.9 * second,
  },
  effect: { worker: "w1", atNs: 1.2 * second, event: "effect", fencingToken: 1, checkedNs: 1.1 * second },
  effectEnd: { worker: "w1", atNs: 1.3 * second, event: "effect-end", fencingToken: 1 },
  appended: { worker: "w1", atNs: 1.4 * second, event: "appended", fencingToken: 1, turnId: "t1", key: "t1/0/call" },
  second: {
    worker: "w2",
    atNs: 4 * second,
    event: "granted",
    fencingToken: 2,
    turnId: "t2",
    inputId: "i2",
    askedNs: 3.9 * second,
    predecessorInstanceId: "one",
  },
  lost: { worker: "w1", atNs: 5 * second, event: "lost", fencingToken: 1, cause: "replaced" },
  ending: { worker: "w2", atNs: 6 * second, event: "ending", fencingToken: 2 },
  ended: { worker: "w2", atNs: 6.1 * second, event: "ended", fencingToken: 2, turnId: "t2", outcome: "answered" },
} satisfies Record<string, WorkerEvent>;

const stopped: readonly SignalSent[] = [
  { worker: "w1", signal: "SIGSTOP", beforeNs: 1.5 * second, afterNs: 1.5 * second },
  { worker: "w1", signal: "SIGCONT", beforeNs: 4.5 * second, afterNs: 4.5 * second },
];

function holder(name: string): Holder {
  return { holderId: name, instanceId: name, host: "test", bootId: "boot", pid: 1 };
}

async function turn(store: MemoryStore, number: number, name: string): Promise<Grant> {
  const runner = { ...holder(name), runnerId: `runner of ${name}` };
  await store.inbox.offer({ sessionId, inputId: `i${number}`, text: "do", onBusy: "wait", runner });
  const begin = { turnId: `t${number}`, runnerId: runner.runnerId };
  const answer = await store.leases.acquire({ sessionId, holder: holder(name), ttlMs: leaseBounds.ttlMs, begin });
  if (answer.kind !== "granted") throw new Error(`answered ${answer.kind}`);
  return { sessionId, holderId: name, fencingToken: answer.fencingToken };
}

/** What the store has after that history. */
async function records(): Promise<SessionRecords> {
  const host = virtualHost({ seed: 1 });
  const store = createMemoryStore({ host });
  const grant = await turn(store, 1, "one");
  await store.transcript.append({ grant, turnId: "t1", entries: [announcing("t1", 0, 1)] });
  await host.advance(leaseBounds.ttlMs + 1);
  const next = await turn(store, 2, "two");
  await store.turns.end({ grant: next, turnId: "t2", outcome: "answered", release: true });
  const all = await store.sessions.records(sessionId);
  if (!all) throw new Error("The session is gone.");
  return all;
}

function ready(worker: string, instanceId: string): WorkerEvent {
  return { worker, atNs: 0, event: "ready", instanceId };
}

function judge(
  spoilt: Partial<Record<keyof typeof facts | "more", WorkerEvent | undefined>>,
  stored: SessionRecords,
  signals: readonly SignalSent[] = stopped,
): readonly string[] {
  const spoiled = { ...facts, ...spoilt };
  const events = [ready("w1", "one"), ready("w2", "two"), ...Object.values(spoiled)].filter((one) => one !== undefined);
  const inOrder = events.toSorted((left, right) => left.atNs - right.atNs);
  return violationsOf(new RecordIndex({ events: inOrder, signals }), stored);
}

function at(worker: string, seconds: number, fact: Fact): WorkerEvent {
  return { worker, atNs: seconds * second, ...fact };
}

test("a right history has no violations", async () => {
  expect(judge({}, await records())).toEqual([]);
});

test("each wrong history is named by the rule it breaks", async () => {
  const stored = await records();
  const effectAt = (checked: number, started: number): WorkerEvent =>
    at("w1", started, { event: "effect", fencingToken: 1, checkedNs: checked * second });
  const wrong: readonly (readonly [string, readonly string[]])[] = [
    ["LEASE-2: token 2 of w1 was granted to w2 too", judge({ first: { ...facts.first, fencingToken: 2 } }, stored)],
    [
      "LEASE-2: token 1 of w1 was granted after token 2 of w2 was",
      judge({ first: { ...facts.first, askedNs: 4.1 * second } }, stored),
    ],
    ["LEASE-1: token 2 of w2 was granted while token 1 of w1 ran and believed", judge({}, stored, [])],
    [
      "LEASE-5: token 2 of w2 was granted 1900.0 ms after",
      judge({ second: { ...facts.second, atNs: 2.8 * second } }, stored),
    ],
    [
      "LEASE-3: an effect under token 1 of w1 started 700.000 ms after",
      judge({ effect: effectAt(4.6, 4.7), effectEnd: undefined }, stored),
    ],
    [
      "LEASE-3: an effect under token 1 of w1 started 100.000 ms after",
      judge({ effect: effectAt(1.6, 4.1), effectEnd: undefined }, stored, []),
    ],
    [
      "LEASE-3: an effect under token 2 of w2 started during",
      judge(
        {
          effectEnd: { ...facts.effectEnd, atNs: 4.9 * second },
          more: at("w2", 4.2, { event: "effect", fencingToken: 2, checkedNs: 4.1 * second }),
        },
        stored,
        [],
      ),
    ],
    [
      "APPEND-3: entry gone was acknowledged to w1 and is lost",
      judge({ appended: { ...facts.appended, key: "gone" } }, stored),
    ],
    [
      "APPEND-1: entry t1/0/call was refused to w1 and is there",
      judge({ more: at("w1", 5, { event: "refused", fencingToken: 1, key: "t1/0/call" }) }, stored),
    ],
    [
      "INBOX-1: input i9 was accepted from w1 and is lost",
      judge({ more: at("w1", 5, { event: "accepted", inputId: "i9" }) }, stored),
    ],
    ["INBOX-1: input i1 was taken by t1 and by t2", judge({ second: { ...facts.second, inputId: "i1" } }, stored)],
    [
      "TURN-1: turn t1 was acknowledged as answered and has another end",
      judge({ more: at("w1", 5, { event: "ended", fencingToken: 1, turnId: "t1", outcome: "answered" }) }, stored),
    ],
  ];
  for (const [said, violations] of wrong)
    expect([said, violations.filter((one) => one.startsWith(said)).length]).toEqual([said, 1]);
});

test("an effect whose process was stopped between check and start is counted, and no violation", async () => {
  const effect = at("w1", 4.6, { event: "effect", fencingToken: 1, checkedNs: 1.4 * second });
  expect(judge({ effect, effectEnd: undefined }, await records())).toEqual([]);
  const index = new RecordIndex({ events: [facts.first, facts.second, effect], signals: stopped });
  expect(lateEffectCount(index)).toBe(1);
});

test("each wrong transcript is named by the rule it breaks", async () => {
  const stored = await records();
  const last = stored.entries.at(-1);
  if (!last) throw new Error("There is no entry.");
  const spoil = (entry: Partial<SessionRecords["entries"][number]>): readonly string[] =>
    judge({}, { ...stored, entries: [...stored.entries, { ...last, seq: last.seq + 1, ...entry }] });
  const late = reporting("t1", 0, 1, true);
  expect(spoil({ ...late, turnId: "t1" })).toEqual(
    expect.arrayContaining([expect.stringMatching(/^APPEND-1: entry 5 continues turn t1/)]),
  );
  expect(spoil({ ...late, turnId: "t2" })).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^APPEND-1: entry 5 was written under token 1 into turn t2 of token 2/),
    ]),
  );
  expect(spoil({ ...announcing("t1", 0, 1), turnId: "t1" })).toEqual(
    expect.arrayContaining(["APPEND-3: entry t1/0/call is there 2 times"]),
  );
});
