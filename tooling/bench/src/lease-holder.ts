import { systemHost } from "@turnkeeper/kernel";
import type { EntryDraft, Grant, Holder, ProcessIdentity, StateStore } from "@turnkeeper/state-store";

/** One kilobyte, of the kind of which transcripts are made. */
export const kilobyte: string = "lorem ipsum dolor sit amet, consectetur adipiscing elit; ".repeat(18).slice(0, 1_000);

export function userDraft(key: string): EntryDraft {
  return { key, body: { role: "user", text: kilobyte } };
}

/** Who holds leases here, for cases that ask the store itself. Without a process that others could look for. */
export const identity: ProcessIdentity = Object.freeze({
  instanceId: systemHost.random.id(),
  host: "bench",
  bootId: systemHost.clock.bootId,
  pid: process.pid,
});

export function newHolder(): Holder {
  return { ...identity, holderId: systemHost.random.id() };
}

/** A turn that runs: what an append needs. */
export interface RunningGrant {
  readonly grant: Grant;
  readonly turnId: string;
}

const ttlMs = 3_600_000;

/** Offers an input, takes the lease and begins a turn with it. */
export async function beginTurn(store: StateStore, sessionId: string): Promise<RunningGrant> {
  const runner = { ...identity, runnerId: systemHost.random.id() };
  const inputId = systemHost.random.id();
  await store.inbox.offer({ sessionId, inputId, text: "Good morning", onBusy: "wait", runner });
  const holder = newHolder();
  const turnId = systemHost.random.id();
  const begin = { turnId, runnerId: runner.runnerId };
  const answer = await store.leases.acquire({ sessionId, holder, ttlMs, begin });
  if (answer.kind !== "granted") throw new Error(`The store answered ${answer.kind}.`);
  return { grant: { sessionId, holderId: holder.holderId, fencingToken: answer.fencingToken }, turnId };
}

/** Fills a session with so many messages of a kilobyte, a thousand in one append. */
export async function fillSession(store: StateStore, running: RunningGrant, messageCount: number): Promise<void> {
  const pieceLength = 1_000;
  for (let from = 0; from < messageCount; from += pieceLength) {
    const length = Math.min(pieceLength, messageCount - from);
    const entries = Array.from({ length }, (_, index) => userDraft(`seed-${from + index}`));
    const answer = await store.transcript.append({ ...running, entries });
    if (answer.kind !== "committed") throw new Error(`The store answered ${answer.kind}.`);
  }
}
