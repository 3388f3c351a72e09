/** What the cases share: who acts, what is said, and the few checks that every rule comes down to. */
import assert from "node:assert/strict";
import { CodedError } from "@turnkeeper/kernel";
import type { AssistantPart, EntryBody, EntryDraft } from "../entry.ts";
import type { StoreErrorCode } from "../errors.ts";
import type { Grant, Holder, ProcessIdentity, Runner } from "../identity.ts";
import type { InputRecord, OfferRequest, PendingInput } from "../inbox.ts";
import type { AcquireRequest, AcquireResult } from "../lease.ts";
import type { SessionRecords } from "../session.ts";
import type { StateStore } from "../state-store.ts";
import type { EndResult, RunningTurn } from "../turn.ts";
import { verifyRecords } from "../verify.ts";
import type { LeaseOnly } from "./conformance-case.ts";

/** The session that a case plays in, unless it needs two. */
export const session = "session-1";

export const ttlMs = 60_000;

function processOf(name: string): ProcessIdentity {
  return { instanceId: `instance-${name}`, host: "host-1", bootId: "boot-1", pid: 100 + name.length };
}

export function holderOf(name: string): Holder {
  return { ...processOf(name), holderId: `holder-${name}` };
}

export function runnerOf(name: string): Runner {
  return { ...processOf(name), runnerId: `runner-${name}` };
}

export function grantOf(name: string, fencingToken: number, sessionId: string = session): Grant {
  return { sessionId, holderId: holderOf(name).holderId, fencingToken };
}

export const draft = (key: string, body: EntryBody): EntryDraft => ({ key, body });
export const says = (key: string, text: string): EntryDraft => assistant(key, { type: "text", text });
export const summarises = (key: string, text: string): EntryDraft => draft(key, { role: "summary", text });
export const calls = (key: string, ...callIds: string[]): EntryDraft =>
  assistant(
    key,
    ...callIds.map((callId) => ({ type: "tool-call", callId, name: "shell", input: { cmd: "ls" } }) as const),
  );
export const results = (key: string, callId: string): EntryDraft =>
  draft(key, { role: "tool", callId, name: "shell", status: "ok", output: `output of ${callId}` });

function assistant(key: string, ...parts: AssistantPart[]): EntryDraft {
  return draft(key, { role: "assistant", parts });
}

type Granted = Extract<AcquireResult, { kind: "granted" }>;

/** Asks as `name`, and must be granted. */
export async function take(
  store: LeaseOnly,
  name: string,
  request: Partial<Omit<AcquireRequest, "holder">> = {},
): Promise<{ readonly grant: Grant; readonly granted: Granted }> {
  const sessionId = request.sessionId ?? session;
  const granted = await store.leases.acquire({ ttlMs, ...request, sessionId, holder: holderOf(name) });
  assert.equal(granted.kind, "granted", `${name} asked for ${sessionId} and was answered ${granted.kind}`);
  return { grant: grantOf(name, granted.fencingToken, sessionId), granted };
}

/** Runs `act`, which must leave the session's lease as it was. */
export async function leavesLease<Answer>(store: LeaseOnly, act: () => Promise<Answer>): Promise<Answer> {
  const before = await store.leases.read(session);
  const answer = await act();
  assert.deepEqual(await store.leases.read(session), before, "the refused call changed the lease");
  return answer;
}

/** The session must be held by `by`, for whoever asks. */
export async function isHeld(store: LeaseOnly, by: string): Promise<void> {
  const answer = await leavesLease(store, () =>
    store.leases.acquire({ sessionId: session, holder: holderOf("contender"), ttlMs }),
  );
  assert.equal(answer.kind, "held", `the lease of ${by} was not held`);
  assert.equal(answer.lease.holder.holderId, holderOf(by).holderId);
}

/** The turn that `name` begins: `a#2` is the second of `runner-a`, under a holder of its own. */
export function beginOf(name: string): { readonly turnId: string; readonly runnerId: string } {
  return { turnId: `turn-${name}`, runnerId: runnerOf(name.split("#")[0] ?? name).runnerId };
}

/** Asks as `name` for a turn. */
export function ask(store: LeaseOnly, name: string, request: Partial<AcquireRequest> = {}): Promise<AcquireResult> {
  return store.leases.acquire({ sessionId: session, holder: holderOf(name), ttlMs, begin: beginOf(name), ...request });
}

/** Asks as `name` for a turn, and must be granted one with this input. */
export async function runs(store: LeaseOnly, name: string, inputId: string): Promise<Grant> {
  const { grant, granted } = await take(store, name, { begin: beginOf(name) });
  assert.equal(granted.input?.inputId, inputId, `${name} was given ${granted.input?.inputId}`);
  return grant;
}

/** Asks as `name` for a turn, and must be told to let the waiter with this input go first. */
export async function isBehind(store: LeaseOnly, name: string, inputId: string): Promise<void> {
  const answer = await ask(store, name);
  assert.equal(answer.kind, "behind", `${name} asked and was answered ${answer.kind}`);
  assert.equal(answer.head.inputId, inputId);
}

/** Ends the turn of `name` as answered and frees the session. */
export async function finishes(
  store: StateStore,
  name: string,
  grant: Grant,
): Promise<Extract<EndResult, { kind: "ended" }>> {
  const { turnId } = beginOf(name);
  const end = await store.turns.end({ grant, turnId, outcome: "answered", release: true });
  assert.equal(end.kind, "ended");
  return end;
}

/** Offers as `name`, and must be accepted. */
export async function offered(
  store: StateStore,
  name: string,
  inputId: string,
  request: Partial<OfferRequest> = {},
): Promise<PendingInput> {
  const offer = await store.inbox.offer(offerOf(name, inputId, request));
  assert.equal(offer.kind, "accepted", `${name} offered ${inputId} and was answered ${offer.kind}`);
  return offer.input;
}

export function offerOf(name: string, inputId: string, request: Partial<OfferRequest> = {}): OfferRequest {
  return {
    sessionId: session,
    inputId,
    text: `text of ${inputId}`,
    onBusy: "wait",
    runner: runnerOf(name),
    ...request,
  };
}

/** `name` runs turn `turn-NAME` with input `input-NAME`. */
export async function startTurn(
  store: StateStore,
  name: string,
  request: Partial<AcquireRequest> = {},
): Promise<{ readonly grant: Grant; readonly turnId: string; readonly granted: Granted }> {
  const inputId = `input-${name}`;
  await offered(store, name, inputId);
  const begin = beginOf(name);
  const { grant, granted } = await take(store, name, { begin, ...request });
  assert.equal(granted.input?.inputId, inputId);
  return { grant, turnId: begin.turnId, granted };
}

/** `a` runs a turn that has said `said`. */
export async function spokenTurn(store: StateStore): ReturnType<typeof startTurn> {
  const turn = await startTurn(store, "a", { ttlMs: 5_000 });
  await store.transcript.append({ grant: turn.grant, turnId: turn.turnId, entries: [says("said", "first")] });
  return turn;
}

/** Everything a session has, which must be there. */
export async function recordsOf(store: StateStore, sessionId: string = session): Promise<SessionRecords> {
  const records = await store.sessions.records(sessionId);
  assert.ok(records, `session ${sessionId} has no records`);
  return records;
}

export async function inputOf(store: StateStore, inputId: string): Promise<InputRecord> {
  const input = await store.inbox.read(session, inputId);
  assert.ok(input, `input ${inputId} is gone`);
  return input;
}

export async function runningOf(store: StateStore, sessionId: string = session): Promise<RunningTurn | undefined> {
  const views = await store.turns.running(sessionId);
  assert.ok(views.length <= 1, `session ${sessionId} runs ${views.length} turns`);
  const turn = views[0]?.turn;
  return turn?.state === "running" ? turn : undefined;
}

/** Runs `act`, which must leave everything the store has of the session as it was. */
export async function changesNothing<Answer>(
  store: StateStore,
  act: () => Promise<Answer>,
  sessionId: string = session,
): Promise<Answer> {
  const look = async (): Promise<unknown> => ({
    records: await store.sessions.records(sessionId),
    transcript: await store.transcript.load(sessionId),
    lease: await store.leases.read(sessionId),
    pending: await store.inbox.pending(sessionId),
    running: await store.turns.running(),
  });
  const before = await look();
  const answer = await act();
  assert.deepEqual(await look(), before, "the refused call changed the session");
  return answer;
}

/** `act` must reject with this code, and change nothing. */
export async function refuses(store: StateStore, code: StoreErrorCode, act: () => Promise<unknown>): Promise<void> {
  await changesNothing(store, () => rejectsWith(code, act));
}

export async function rejectsWith(code: StoreErrorCode, act: () => Promise<unknown>): Promise<void> {
  await assert.rejects(act, (error) => CodedError.is(error, code), `expected a rejection with ${code}`);
}

// Every check here says what it saw: `assert.ok` without a message reads its own source to make one, which does not end
// under some loaders.
export function assertGrew(what: string, before: number | undefined, after: number | undefined): void {
  assert.ok(before !== undefined && after !== undefined && after > before, `${what}: ${after} after ${before}`);
}

/** The records of the session must pass `verifyRecords`. */
export async function assertVerified(store: StateStore, sessionId: string = session): Promise<void> {
  assert.deepEqual(verifyRecords(await recordsOf(store, sessionId)), []);
}

/** The keys of the model's context, in its order. */
export async function contextKeys(store: StateStore): Promise<readonly string[]> {
  const { entries } = await store.transcript.load(session);
  return entries.map((entry) => entry.key);
}

/** Two turns; the first two entries are replaced by a summary. Context: summary, a2, input/input-b, b1, b2. */
export async function spoken(store: StateStore): Promise<void> {
  const a = await startTurn(store, "a");
  const entries = [says("a1", "apple"), says("a2", "pear")];
  await store.transcript.append({ grant: a.grant, turnId: a.turnId, entries });
  await finishes(store, "a", a.grant);
  const b = await startTurn(store, "b");
  const turn = { grant: b.grant, turnId: b.turnId };
  await store.transcript.append({ ...turn, entries: [says("b1", "plum"), says("b2", "Apple Pie")] });
  const { entries: context } = await store.transcript.load(session);
  const throughSeq = context.find((entry) => entry.key === "a1")?.seq ?? assert.fail("no entry a1");
  const basis = { throughSeq, compactionCount: 0 };
  await store.transcript.applyCompaction({ ...turn, basis, summary: summarises("summary", "fruit") });
}
