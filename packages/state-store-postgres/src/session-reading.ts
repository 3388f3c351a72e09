/** What a call must read beside what is always read: the running turn with its calls, and every input that has not ended. */
export class Reading {
  /** Sessions beside the call's own: those that its end is told to, or that end with it. */
  readonly sessionIds: Set<string> = new Set();
  readonly keys: Set<string> = new Set();
  readonly turnIds: Set<string> = new Set();
  readonly inputIds: Set<string> = new Set();

  include({ sessionIds, keys, turnIds, inputIds }: Reading): void {
    for (const sessionId of sessionIds) this.sessionIds.add(sessionId);
    for (const key of keys) this.keys.add(key);
    for (const turnId of turnIds) this.turnIds.add(turnId);
    for (const inputId of inputIds) this.inputIds.add(inputId);
  }
}

/** Thrown in a decision that asks for what its image has not read: it is read, and decided anew. */
export class Unread extends Error {}
