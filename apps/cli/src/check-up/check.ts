/** One thing that `doctor` looked at. */
export interface Check {
  readonly name: string;
  /** `note`: worth knowing, works all the same. */
  readonly status: "ok" | "note" | "wrong";
  readonly found: string;
  /** What to do about it. */
  readonly next?: string;
}

export function ok(name: string, found: string): Check {
  return { name, status: "ok", found };
}

export function note(name: string, found: string, next?: string): Check {
  return { name, status: "note", found, ...(next === undefined ? {} : { next }) };
}

export function wrong(name: string, found: string, next: string): Check {
  return { name, status: "wrong", found, next };
}
