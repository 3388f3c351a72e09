/**
 * Says of the runners of this handle that they live, for each input that one of them waits to run, by the server's
 * clock: while somebody waits, one statement every third of `runnerTtlMs`; where nobody does, none. Whoever says nothing
 * for that time is passed over, and any runner of the store may run its input.
 *
 * Leaves who gets it to the claim: a runner that was merely slow claims like everybody else, and the session's version
 * lets one of them have it.
 */
import type { Timers } from "@turnkeeper/kernel";
import type { ResolvedPostgresStoreOptions } from "./options.ts";
import { StatementFailed } from "./server.ts";
import type { Server } from "./server.ts";

/** Two times may be lost on the way before a runner seems gone. */
const timesPerTtl = 3;

/** What a runner of this handle waits to run. */
export interface VouchedInput {
  readonly sessionId: string;
  readonly inputId: string;
  readonly runnerId: string;
}

function keyOf(sessionId: string, inputId: string): string {
  return JSON.stringify([sessionId, inputId]);
}

export class RunnerVouching {
  readonly #server: Server;
  readonly #timers: Timers;
  readonly #ttlMs: number;
  readonly #inputs = new Map<string, VouchedInput>();
  #isClosed = false;
  #cancel: (() => void) | undefined;

  constructor(server: Server, { runnerTtlMs }: Pick<ResolvedPostgresStoreOptions, "runnerTtlMs">, timers: Timers) {
    this.#server = server;
    this.#timers = timers;
    this.#ttlMs = runnerTtlMs;
  }

  /** The input was stored for its runner a moment ago, and has its first time from that. */
  begin(input: VouchedInput): void {
    if (this.#isClosed) return;
    this.#inputs.set(keyOf(input.sessionId, input.inputId), input);
    this.#cancel ??= this.#later();
  }

  /** It waits no more. What ends otherwise is told by the server. */
  end(sessionId: string, inputId: string): void {
    this.#inputs.delete(keyOf(sessionId, inputId));
  }

  close(): void {
    this.#isClosed = true;
    this.#inputs.clear();
    this.#cancel?.();
  }

  #later(): () => void {
    return this.#timers.after(this.#ttlMs / timesPerTtl, () => void this.#vouch(), { keepAlive: false });
  }

  async #vouch(): Promise<void> {
    const told = [...this.#inputs];
    const inputs = told.map(([, input]) => input);
    try {
      if (told.length > 0) for (const key of await this.#tell(told, inputs)) this.#inputs.delete(key);
    } catch (error) {
      // A server that is not there hears nothing, and lets nobody take over either.
      if (!(error instanceof StatementFailed || this.#isClosed)) throw error;
    }
    this.#cancel = this.#inputs.size > 0 ? this.#later() : undefined;
  }

  /** Answers the keys of what waits no more, unless it began anew meanwhile. */
  async #tell(
    told: readonly (readonly [string, VouchedInput])[],
    inputs: readonly VouchedInput[],
  ): Promise<readonly string[]> {
    const [row] = await this.#server.once<{ places: readonly number[] }>(
      `SELECT ${this.#server.schema}.vouch_for_runners($1, $2, $3, $4) AS places`,
      [
        inputs.map(({ sessionId }) => sessionId),
        inputs.map(({ inputId }) => inputId),
        inputs.map(({ runnerId }) => runnerId),
        this.#ttlMs,
      ],
    );
    const waiting = new Set(row?.places);
    return told.flatMap(([key, input], index) =>
      !waiting.has(index + 1) && this.#inputs.get(key) === input ? [key] : [],
    );
  }
}
