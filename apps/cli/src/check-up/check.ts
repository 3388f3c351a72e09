import type { NextStep } from "../next-step.ts";

/** One thing that `doctor` looked at. */
export interface Check {
  readonly name: string;
  /** `note`: worth knowing, works all the same. */
  readonly status: "ok" | "note" | "wrong";
  readonly found: string;
  /** What is to be done by hand before `next` can be typed. */
  readonly first?: string;
  /** What to do about it: a command to be typed as it stands, or a sentence, never one within the other. */
  readonly next?: string;
}

export function ok(name: string, found: string): Check {
  return { name, status: "ok", found };
}

const stepOf = (step: string | NextStep | undefined): Partial<NextStep> =>
  typeof step === "string" ? { next: step } : { ...step };

export function note(name: string, found: string, step?: string | NextStep): Check {
  return { name, status: "note", found, ...stepOf(step) };
}

export function wrong(name: string, found: string, step: string | NextStep): Check {
  return { name, status: "wrong", found, ...stepOf(step) };
}
