import type { EntryDraft, Grant, Holder, ProcessIdentity, Runner, StateStore } from "@turnkeeper/state-store";

const process1: ProcessIdentity = { instanceId: "instance-1", host: "host-1", bootId: "boot-1", pid: 101 };

export function holderOf(name: string): Holder {
  return { ...process1, holderId: `holder-${name}` };
}

export function runnerOf(name: string): Runner {
  return { ...process1, runnerId: `runner-${name}` };
}

export function says(key: string, text = `text of ${key}`): EntryDraft {
  return { key, body: { role: "assistant", parts: [{ type: "text", text }] } };
}

/** Grants `sessionId` to `name`, which must be free. */
export async function grantTo(store: StateStore, name: string, sessionId = "session-1"): Promise<Grant> {
  const holder = holderOf(name);
  const answer = await store.leases.acquire({ sessionId, holder, ttlMs: 60_000 });
  if (answer.kind !== "granted") throw new Error(`${name} asked for ${sessionId} and was answered ${answer.kind}.`);
  return { sessionId, holderId: holder.holderId, fencingToken: answer.fencingToken };
}

/** Grants the session and begins turn `turn-NAME`. */
export async function turnOf(
  store: StateStore,
  name: string,
): Promise<{ readonly grant: Grant; readonly turnId: string }> {
  const grant = await grantTo(store, name);
  const turnId = `turn-${name}`;
  await store.turns.begin(grant, turnId, []);
  return { grant, turnId };
}

/** The keys of all entries of the session. */
export async function keysOf(store: StateStore, sessionId = "session-1"): Promise<string[]> {
  const { entries } = await store.transcript.load(sessionId, { all: true });
  return entries.map(({ key }) => key);
}

/** What names the turn that `name` began under the grant with this token. */
export function grantOfTurn(name: string, fencingToken: number): { readonly grant: Grant; readonly turnId: string } {
  return { grant: { sessionId: "session-1", holderId: holderOf(name).holderId, fencingToken }, turnId: `turn-${name}` };
}
