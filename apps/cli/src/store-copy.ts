/** What `store copy` does: sessions at rest, one after another, each whole or not at all; and every fencing token. */
import { pulseOf } from "@turnkeeper/agent-core";
import { canonicalJson, verifyRecords } from "@turnkeeper/state-store";
import type { SessionRecords, SessionToken, StateStore } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { cliError } from "./cli-error.ts";
import {
  copyCommand,
  deleteCommand,
  repairCommand,
  stopCommand,
  topCommand,
  verifyCommand,
} from "./printed-command.ts";
import { leftLease, sessionIds } from "./store-verification.ts";

export interface CopySource {
  readonly store: StateStore;
  /** Asks whether its holders live. */
  readonly presence: ProcessPresence;
  /** How the store is named in a command. */
  readonly shown: string;
}

export type CopyTarget = Pick<CopySource, "store" | "shown">;

export interface CopyProgress {
  readonly doneCount: number;
  readonly sessionCount: number;
}

export interface CopyReport {
  readonly copiedCount: number;
  /** Sessions that were there already, as they are in the source. */
  readonly presentCount: number;
  readonly entryCount: number;
}

/** Why a session cannot be copied now, and what to type before the copy is repeated. */
interface Obstacle {
  readonly what: string;
  readonly next: string;
}

/** What runs in a session, or was left in it; a session at rest is the same wherever it lies. */
async function obstacleIn(
  { store, presence, shown }: CopySource,
  { session: { sessionId }, lease, turns, inputs }: SessionRecords,
): Promise<Obstacle | undefined> {
  const repair = repairCommand(shown, sessionId);
  const stop = stopCommand(shown, sessionId);
  const left = lease && (await leftLease(presence, lease));
  if (left !== undefined) return { what: left, next: repair };
  if (lease) return { what: `it is held by pid ${lease.holder.pid} on ${lease.holder.host}`, next: stop };
  const open = turns.find(({ state }) => state !== "ended");
  if (open) return { what: `its turn ${open.turnId} waits for approval; answer or stop it`, next: stop };
  for (const input of inputs) {
    if (input.state !== "pending" || !input.runner) continue;
    const { pid, host } = input.runner;
    const what = `input ${input.inputId} is to be run by pid ${pid} on ${host}`;
    const isDead = (await pulseOf(presence, input.runner)) === "dead";
    return isDead ? { what: `${what}, which has died`, next: repair } : { what, next: topCommand(shown) };
  }
  const [spooled] = await store.spool.waiting(sessionId);
  return spooled && { what: `steps that the store had refused wait in ${spooled.place}`, next: repair };
}

/** Everything but the transcript, which its revision and its count stand for, and the token, which may have grown. */
function told({ lease: _lease, entries: _entries, fencingToken: _token, ...rest }: SessionRecords): string {
  return canonicalJson(rest);
}

class StoreCopy {
  readonly #from: CopySource;
  readonly #to: CopyTarget;
  #copiedCount = 0;
  #presentCount = 0;
  #entryCount = 0;

  constructor(from: CopySource, to: CopyTarget) {
    this.#from = from;
    this.#to = to;
  }

  get report(): CopyReport {
    return { copiedCount: this.#copiedCount, presentCount: this.#presentCount, entryCount: this.#entryCount };
  }

  /** Nothing is copied of a store in which anything runs. */
  async refuseLive(): Promise<void> {
    for (const { turn } of await this.#from.store.turns.running()) await this.#atRest(turn.sessionId);
  }

  async #atRest(sessionId: string): Promise<void> {
    const records = await this.#from.store.sessions.records(sessionId, { withoutEntries: true });
    const obstacle = records && (await obstacleIn(this.#from, records));
    if (!obstacle) return;
    throw cliError(
      "STORE_HELD",
      `Could not copy session ${sessionId} of ${this.#from.shown}: ${obstacle.what}. Repeat the copy when it is at rest. Next: ${obstacle.next}`,
    );
  }

  async session(sessionId: string): Promise<void> {
    const { store } = this.#from;
    const own = await store.sessions.records(sessionId, { withoutEntries: true });
    // Deleted since it was listed: its token is copied with the others.
    if (!own) return;
    await this.#atRest(sessionId);
    const present = await this.#to.store.sessions.records(sessionId, { withoutEntries: true });
    if (present) {
      if (told(present) !== told(own)) throw this.#differs(sessionId);
      this.#presentCount++;
      return;
    }
    const records = await store.sessions.records(sessionId);
    if (!records) return;
    const [fault] = verifyRecords(records);
    if (fault)
      throw cliError(
        "REFUSED",
        `Could not copy session ${sessionId}: ${fault.detail} (${fault.rule}). Next: ${verifyCommand(this.#from.shown)}`,
      );
    const result = await this.#to.store.sessions.importSession(records);
    if (result.kind === "exists") throw this.#differs(sessionId);
    if (result.kind === "held") throw this.#heldThere(sessionId);
    this.#copiedCount++;
    this.#entryCount += records.entries.length;
  }

  #differs(sessionId: string): Error {
    return cliError(
      "REFUSED",
      `Session ${sessionId} is in ${this.#to.shown} already and is another one there, or has changed in one of the stores since it was copied. Keep one of the two; to take the source's: ${deleteCommand(this.#to.shown, sessionId)}`,
    );
  }

  #heldThere(sessionId: string): Error {
    return cliError(
      "STORE_HELD",
      `Could not copy session ${sessionId}: somebody has its lease in ${this.#to.shown}. Next: ${stopCommand(this.#to.shown, sessionId)}`,
    );
  }

  /** Of deleted sessions too: what the source granted is never granted again (LEASE-2). */
  async tokens(): Promise<void> {
    const there = tokensOf(this.#to.store);
    let other = await there.next();
    for await (const token of tokensOf(this.#from.store)) {
      while (other.done !== true && isBefore(other.value, token)) other = await there.next();
      const known = other.done !== true && other.value.sessionId === token.sessionId ? other.value.fencingToken : 0;
      if (known >= token.fencingToken) continue;
      const { kind } = await this.#to.store.sessions.raiseToken(token);
      if (kind === "held") throw this.#heldThere(token.sessionId);
    }
  }

  /** Whoever worked in the source meanwhile is found out: what was copied before would be out of date. */
  async prove(): Promise<void> {
    await this.refuseLive();
    for await (const sessionId of sessionIds(this.#from.store)) {
      const own = await this.#from.store.sessions.read(sessionId);
      const copy = await this.#to.store.sessions.read(sessionId);
      if (!own || (copy && canonicalJson(own) === canonicalJson(copy))) continue;
      if (copy) throw this.#differs(sessionId);
      throw cliError(
        "STORE_HELD",
        `Session ${sessionId} was made in ${this.#from.shown} while it was copied. Next: ${copyCommand(this.#from.shown, this.#to.shown)}`,
      );
    }
  }
}

const isBefore = (left: SessionToken, right: SessionToken): boolean =>
  Buffer.compare(Buffer.from(left.sessionId), Buffer.from(right.sessionId)) < 0;

async function* tokensOf(store: StateStore): AsyncGenerator<SessionToken, undefined> {
  for (let after = ""; ;) {
    const page = await store.sessions.tokens({ after });
    yield* page;
    const last = page.at(-1);
    if (!last) return undefined;
    after = last.sessionId;
  }
}

/**
 * Copies every session of one store into another, and the fencing tokens of those that were deleted. What is there
 * already, as it is in the source, is left alone: so a copy that was broken off is gone on with. The source is only read.
 * Rejects with `STORE_HELD` where anything runs or waits, and with `REFUSED` for a session that is another one in the
 * target.
 */
export async function copyStore(
  from: CopySource,
  to: CopyTarget,
  onProgress: (progress: CopyProgress) => void,
): Promise<CopyReport> {
  const copy = new StoreCopy(from, to);
  await copy.refuseLive();
  let sessionCount = 0;
  for await (const _id of sessionIds(from.store)) sessionCount++;
  let doneCount = 0;
  for await (const sessionId of sessionIds(from.store)) {
    await copy.session(sessionId);
    onProgress({ doneCount: ++doneCount, sessionCount });
  }
  await copy.tokens();
  await copy.prove();
  return copy.report;
}
