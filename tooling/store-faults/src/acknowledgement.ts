/** What a store process tells its parent, a JSON line each, before it does anything else. */

/** Answered by the store, and so binding for it. All but `granted` and `released` were committed at `full`. */
export type Acknowledgement =
  /** A grant alone is lease traffic: it need not survive a power cut. */
  | { readonly told: "granted"; readonly sessionId: string; readonly fencingToken: number }
  | { readonly told: "accepted"; readonly sessionId: string; readonly inputId: string }
  | { readonly told: "withdrawn"; readonly sessionId: string; readonly inputId: string }
  /** A turn took the input: its user entry was written with it. */
  | {
      readonly told: "taken";
      readonly sessionId: string;
      readonly fencingToken: number;
      readonly turnId: string;
      readonly inputIds: readonly string[];
    }
  | {
      readonly told: "appended";
      readonly sessionId: string;
      readonly fencingToken: number;
      readonly keys: readonly string[];
      readonly settledInputIds: readonly string[];
    }
  /** A step that went to the spool instead of the store; with the last of a turn its end. */
  | {
      readonly told: "kept";
      readonly sessionId: string;
      readonly fencingToken: number;
      readonly turnId: string;
      readonly keys: readonly string[];
      readonly settledInputIds: readonly string[];
      readonly isEnd: boolean;
    }
  | {
      readonly told: "ended";
      readonly sessionId: string;
      readonly fencingToken: number;
      readonly turnId: string;
      readonly inputIds: readonly string[];
    };

/** How the process itself fares. */
export type Report =
  | { readonly told: "ready" }
  /** Every lane has run its turns. */
  | { readonly told: "done" }
  /** The store answered that the grant does not stand, which nobody took away. */
  | { readonly told: "refused"; readonly sessionId: string; readonly attempt: string; readonly answer: string }
  | { readonly told: "failed"; readonly attempt: string; readonly failure: Failure };

/** An error of the store as the process met it; without a code it is a fault of the store. */
export interface Failure {
  readonly code: string | undefined;
  readonly systemCode: string | undefined;
  readonly isSealed: boolean;
  readonly message: string;
}

export type Told = Acknowledgement | Report;

/** How a step's entries are keyed: each says how many there are, so that a half step gives itself away. */
export function stepKeys(step: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${step}/${index + 1}of${count}`);
}

/** The step that an entry belongs to; absent for entries that the store wrote itself. */
export function stepOf(key: string): { readonly step: string; readonly count: number } | undefined {
  const match = /^(.+)\/\d+of(\d+)$/.exec(key);
  return match ? { step: match[1] ?? "", count: Number(match[2]) } : undefined;
}
