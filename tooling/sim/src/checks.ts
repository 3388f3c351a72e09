import { verifyRecords } from "@turnkeeper/state-store";
import type { MemoryStore } from "@turnkeeper/state-store";

/** A side effect of a tool: when it began, under which grant. */
export interface Effect {
  readonly sessionId: string;
  readonly fencingToken: number;
  readonly pid: number;
}

/** Watches the invariants from outside: on the shared store itself, past every fault. Reports in sentences. */
export class Checks {
  readonly violations: string[] = [];
  readonly #store: MemoryStore;
  readonly #tokens = new Map<string, number>();
  readonly #entryCounts = new Map<string, number>();
  readonly #accepted = new Map<string, Set<string>>();

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  /** A caller was told that this input is stored. */
  accepted(sessionId: string, inputId: string): void {
    this.#accepted.set(sessionId, (this.#accepted.get(sessionId) ?? new Set()).add(inputId));
  }

  /** LEASE-1, LEASE-3: a side effect begins only under the grant that stands. */
  async effectBegins(effect: Effect): Promise<void> {
    const lease = await this.#store.leases.read(effect.sessionId);
    if (lease?.fencingToken === effect.fencingToken && lease.holder.pid === effect.pid) return;
    const standing = lease ? `token ${lease.fencingToken} of pid ${lease.holder.pid}` : "nothing";
    this.violations.push(
      `LEASE-3: pid ${effect.pid} began a side effect on ${effect.sessionId} under token ${effect.fencingToken} while ${standing} held it`,
    );
  }

  /** After every step: what the store says must make sense, tokens only grow, nothing accepted or appended is lost. */
  async afterStep(sessionIds: readonly string[]): Promise<void> {
    for (const sessionId of sessionIds) {
      const records = await this.#store.sessions.records(sessionId);
      if (!records) continue;
      for (const { rule, detail } of verifyRecords(records)) this.violations.push(`${rule}: ${sessionId}: ${detail}`);
      const before = this.#tokens.get(sessionId) ?? 0;
      if (records.fencingToken < before)
        this.violations.push(`LEASE-2: the token of ${sessionId} fell from ${before} to ${records.fencingToken}`);
      this.#tokens.set(sessionId, records.fencingToken);
      const count = this.#entryCounts.get(sessionId) ?? 0;
      if (records.entries.length < count) this.violations.push(`APPEND-3: ${sessionId} lost entries`);
      this.#entryCounts.set(sessionId, records.entries.length);
      const stored = new Set(records.inputs.map((input) => input.inputId));
      for (const inputId of this.#accepted.get(sessionId) ?? []) {
        if (!stored.has(inputId)) this.violations.push(`INBOX-1: ${sessionId} lost input ${inputId}`);
      }
      this.#turnsDoNotInterleave(
        sessionId,
        // What came late stands where it came, between turns of others, and is said to be late.
        records.entries.filter((entry) => !entry.late).map((entry) => entry.turnId),
      );
    }
  }

  #turnsDoNotInterleave(sessionId: string, turnIds: readonly string[]): void {
    const ended = new Set<string>();
    let current: string | undefined;
    for (const turnId of turnIds) {
      if (turnId === current) continue;
      if (current !== undefined) ended.add(current);
      if (ended.has(turnId)) this.violations.push(`APPEND-1: turns of ${sessionId} interleave at ${turnId}`);
      current = turnId;
    }
  }

  /** Once all faults have ended and time has passed: every input has its end, nothing runs, nothing is held. */
  async atRest(sessionIds: readonly string[]): Promise<void> {
    for (const sessionId of sessionIds) {
      const records = await this.#store.sessions.records(sessionId);
      for (const input of records?.inputs ?? []) {
        if (input.state !== "settled")
          this.violations.push(`INBOX-1: input ${input.inputId} of ${sessionId} is still ${input.state} at rest`);
      }
      for (const turn of records?.turns ?? []) {
        if (turn.state === "running")
          this.violations.push(`TURN-1: turn ${turn.turnId} of ${sessionId} still runs at rest`);
      }
      if (records?.lease)
        this.violations.push(`TURN-1: ${sessionId} is still held at rest, by pid ${records.lease.holder.pid}`);
    }
  }
}
