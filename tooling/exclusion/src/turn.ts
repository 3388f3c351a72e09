import { setTimeout as pause } from "node:timers/promises";
import { CodedError } from "@turnkeeper/kernel";
import type { EntryDraft, StateStore } from "@turnkeeper/state-store";
import type { LossCause, TurnLease } from "@turnkeeper/turn-lease";
import type { Mode } from "./bounds.ts";
import { nowNs } from "./history.ts";
import type { Fact } from "./history.ts";
import type { UnfencedWriter } from "./unfenced-writer.ts";
import type { WatchedHost } from "./watched-deps.ts";
import { announcing, reporting } from "./written-entry.ts";

export interface TurnDeps {
  readonly store: StateStore;
  readonly host: WatchedHost;
  readonly record: (fact: Fact) => void;
  readonly mode: Mode;
  /** Present in mode `unfenced`. */
  readonly unfenced: UnfencedWriter | undefined;
}

const stepsMax = 4;
const shortEffectMsMax = 40;
/** Longer than a renewal interval, so that grants are renewed under way. */
const longEffectMsMax = 900;
const longEffectShare = 0.05;
/** Several after one append, which asks the store: between them only the lease's own word keeps a holder back. */
const effectsMax = 4;

/**
 * Repeats a write that a stopped process kept from the lock for too long, or of which it is not known whether it was
 * written: to repeat it is harmless.
 */
export async function patiently<Result>(record: (fact: Fact) => void, write: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!CodedError.is(error, "STORE_BUSY") && !CodedError.is(error, "STORE_IO")) throw error;
      record({ event: "busy" });
    }
  }
}

/**
 * One turn that means no harm and takes no care: it asks before each effect, and stops that when the lease is lost, but
 * goes on writing until the store refuses. So whatever is kept out of the transcript was kept out by the token.
 */
export class WorkerTurn {
  readonly #deps: TurnDeps;
  readonly #lease: TurnLease;
  readonly #turnId: string;

  constructor(deps: TurnDeps, lease: TurnLease, turnId: string) {
    this.#deps = deps;
    this.#lease = lease;
    this.#turnId = turnId;
  }

  async run(): Promise<void> {
    const { fencingToken, lost } = this.#lease;
    const onLost = (): void => {
      const { context } = lost.reason as CodedError;
      this.#deps.record({ event: "lost", fencingToken, cause: context["cause"] as LossCause });
    };
    lost.addEventListener("abort", onLost, { once: true });
    await this.#steps();
    await this.#end();
    lost.removeEventListener("abort", onLost);
    await this.#lease[Symbol.asyncDispose]();
  }

  async #steps(): Promise<void> {
    const { fencingToken } = this.#lease;
    const stepCount = 1 + Math.floor(this.#deps.host.random.unit() * stepsMax);
    for (let step = 0; step < stepCount; step++) {
      if (!(await this.#append(announcing(this.#turnId, step, fencingToken)))) return;
      const isDone = await this.#effects();
      if (!(await this.#append(reporting(this.#turnId, step, fencingToken, isDone)))) return;
    }
  }

  async #append(draft: EntryDraft): Promise<boolean> {
    const { store, record, unfenced } = this.#deps;
    const { grant, sessionId, fencingToken } = this.#lease;
    const { key } = draft;
    const turnId = this.#turnId;
    if (unfenced) unfenced.append(sessionId, turnId, draft);
    else {
      const request = { grant, turnId, entries: [draft] };
      const answer = await patiently(record, () => store.transcript.append(request));
      if (answer.kind === "stale-token") {
        record({ event: "refused", fencingToken, key });
        return false;
      }
    }
    record({ event: "appended", fencingToken, turnId, key });
    return true;
  }

  async #effects(): Promise<boolean> {
    const count = 1 + Math.floor(this.#deps.host.random.unit() * effectsMax);
    for (let number = 0; number < count; number++) if (!(await this.#effect())) return false;
    return true;
  }

  /** Something done in the world that no token protects. Answers whether it was done. */
  async #effect(): Promise<boolean> {
    const { record, host, mode } = this.#deps;
    const { fencingToken, lost } = this.#lease;
    const isAsking = mode !== "unconfirmed";
    if (isAsking && !(await this.#isConfirmed())) return false;
    record({ event: "effect", fencingToken, checkedNs: isAsking ? host.lastReadNs : nowNs() });
    const options = isAsking ? { signal: lost } : {};
    // An effect that is cut short has ended all the same; who cut it is recorded by the loss.
    const msMax = host.random.unit() < longEffectShare ? longEffectMsMax : shortEffectMsMax;
    await pause(host.random.unit() * msMax, undefined, options).catch(() => {});
    record({ event: "effect-end", fencingToken });
    return true;
  }

  async #isConfirmed(): Promise<boolean> {
    try {
      await this.#lease.confirm();
      return true;
    } catch (error) {
      if (CodedError.is(error, "LEASE_LOST")) return false;
      throw error;
    }
  }

  async #end(): Promise<void> {
    const { store, record } = this.#deps;
    const { grant, fencingToken } = this.#lease;
    const turnId = this.#turnId;
    const request = { grant, turnId, outcome: "answered", release: true } as const;
    const write = (): ReturnType<StateStore["turns"]["end"]> => patiently(record, () => store.turns.end(request));
    record({ event: "ending", fencingToken });
    const released = await this.#lease.release(write);
    // A lost lease sends no end; this turn tries even that.
    const answer = released.kind === "lost" ? await write() : released;
    if (answer.kind === "ended") record({ event: "ended", fencingToken, turnId, outcome: "answered" });
    else record({ event: "refused", fencingToken });
  }
}
