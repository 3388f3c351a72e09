import { CodedError } from "@turnkeeper/kernel";
import type { Connection, Durability } from "./connection.ts";
import { Transaction } from "./transaction.ts";
import type { Write } from "./write-queue.ts";

/** After so much work in one piece the event loop gets its turn. */
const longestPieceMs = 8;

/** Thrown where a member is refused that has nothing of its own to roll back to; the group is run again, apart. */
export class MemberRefused extends Error {}

/**
 * Writes that share one transaction and one wait for the disk, each of which fails alone (rule 7.7), and nothing is
 * answered before the commit, refusals included. Savepoints are a tenth of what a member costs and refusals are rare:
 * so the members are staged together, and `apart`, each in a savepoint to which its refusal rolls back, only when one
 * was refused. Any other error may have taken the whole transaction with it, so it ends the group, and its members are
 * run one by one.
 */
export class WriteGroup {
  readonly #rows: Connection;
  /** Made for the first refusal: nearly every group has none. */
  #refusals: Map<Write, unknown> | undefined;
  #writes: readonly Write[];

  constructor(writes: readonly Write[], rows: Connection) {
    this.#writes = writes;
    this.#rows = rows;
  }

  /** Whom it answers; after staging only those that were staged. */
  get writes(): readonly Write[] {
    return this.#writes;
  }

  /** What the strictest member asks for. */
  get durability(): Durability {
    return this.#writes.some(({ durability }) => durability === "full") ? "full" : "normal";
  }

  /** Runs the bodies in order; the rest is left to the next group when they take too long. */
  stage(durability: Durability, isApart: boolean): void {
    const clock = this.#writes[0]?.host.clock;
    const sinceMs = clock?.monotonicMs() ?? 0;
    const isShared = this.#writes.length > 1;
    let stagedCount = 0;
    for (const write of this.#writes) {
      const tx = new Transaction(this.#rows, write.host.clock, durability);
      if (!isShared) write.stage(tx);
      else if (isApart) this.#stageApart(write, tx);
      else this.#stageTogether(write, tx);
      stagedCount++;
      if (clock && clock.monotonicMs() - sinceMs >= longestPieceMs) break;
    }
    if (stagedCount < this.#writes.length) this.#writes = this.#writes.slice(0, stagedCount);
  }

  /** Tells each member what became of it. Only after the commit. */
  answer(): void {
    for (const write of this.#writes) {
      const refusal = this.#refusals?.get(write);
      if (refusal === undefined) write.resolve();
      else write.reject(refusal);
    }
  }

  #stageTogether(write: Write, tx: Transaction): void {
    try {
      write.stage(tx);
    } catch (error) {
      throw CodedError.is(error) ? new MemberRefused() : error;
    }
  }

  #stageApart(write: Write, tx: Transaction): void {
    this.#rows.run("SAVEPOINT member");
    try {
      write.stage(tx);
    } catch (error) {
      if (!CodedError.is(error) || !this.#rows.isInTransaction) throw error;
      this.#rows.run("ROLLBACK TO member");
      (this.#refusals ??= new Map()).set(write, error);
    }
    this.#rows.run("RELEASE member");
  }
}
