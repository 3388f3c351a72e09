/**
 * What the processes record, a JSON line for each event, and what the parent records of the signals it sent. All times
 * are nanoseconds of CLOCK_MONOTONIC, one clock for all processes of a machine. As doubles they are exact for the first
 * 104 days of a boot; later rounding may make two equal, never swap them, and only a strict order is ever used.
 */
import { openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { InputEnd } from "@turnkeeper/state-store";
import type { LossCause } from "@turnkeeper/turn-lease";

export type Fact =
  /** The process competes from here on. */
  | { readonly event: "ready"; readonly instanceId: string }
  /** The store answered that it has this input. */
  | { readonly event: "accepted"; readonly inputId: string }
  /** The store answered with a grant; `askedNs` is before that very request was sent. */
  | {
      readonly event: "granted";
      readonly fencingToken: number;
      readonly turnId: string;
      readonly inputId: string;
      readonly askedNs: number;
      /** Who left a turn that this grant settled. */
      readonly predecessorInstanceId?: string;
    }
  | { readonly event: "renewed"; readonly fencingToken: number; readonly askedNs: number }
  /** A side effect starts. `checkedNs` is before the reading of the clock by which the lease was last judged to stand. */
  | { readonly event: "effect"; readonly fencingToken: number; readonly checkedNs: number }
  | { readonly event: "effect-end"; readonly fencingToken: number }
  /** The store acknowledged an entry. */
  | { readonly event: "appended"; readonly fencingToken: number; readonly turnId: string; readonly key: string }
  /** The store refused an entry, or with no key the end of the turn: the token was stale. */
  | { readonly event: "refused"; readonly fencingToken: number; readonly key?: string }
  /** The holder stopped believing. */
  | { readonly event: "lost"; readonly fencingToken: number; readonly cause: LossCause }
  /** The end of the turn is about to be sent. */
  | { readonly event: "ending"; readonly fencingToken: number }
  /** The store acknowledged the end of the turn. */
  | { readonly event: "ended"; readonly fencingToken: number; readonly turnId: string; readonly outcome: InputEnd }
  /** The store was busy beyond its patience; the call was repeated. */
  | { readonly event: "busy" };

export type WorkerEvent = Fact & { readonly worker: string; readonly atNs: number };

export type EventOf<Name extends Fact["event"]> = Extract<WorkerEvent, { event: Name }>;

/** A signal that the parent sent, or the end that it saw: the sending lies between the two times. */
export interface SignalSent {
  readonly worker: string;
  readonly signal: "SIGKILL" | "SIGSTOP" | "SIGCONT";
  readonly beforeNs: number;
  readonly afterNs: number;
}

export interface History {
  /** In the order of their times. */
  readonly events: readonly WorkerEvent[];
  readonly signals: readonly SignalSent[];
}

export function nowNs(): number {
  return Number(process.hrtime.bigint());
}

const suffix = ".jsonl";

/** Writes each fact before the process does anything else: what the kernel has taken survives kill -9. */
export function openRecorder(folder: string, worker: string): (fact: Fact) => void {
  const file = openSync(join(folder, `${worker}${suffix}`), "a");
  return (fact) => void writeSync(file, `${JSON.stringify({ worker, atNs: nowNs(), ...fact })}\n`);
}

/** Everything recorded so far. A last line that its writer did not live to finish was never written. */
export function readEvents(folder: string): readonly WorkerEvent[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(suffix))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1))
    .map((line) => JSON.parse(line) as WorkerEvent)
    .toSorted((left, right) => left.atNs - right.atNs);
}
