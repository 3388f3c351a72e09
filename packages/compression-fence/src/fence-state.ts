/** Why a fence admits no commit. `committing`: one is running already; the others are for good. */
export type FenceRefusal = "committing" | "cancelled" | "revoked" | "deadline";

type FenceClosure = Exclude<FenceRefusal, "committing">;

export type FenceState =
  | { readonly kind: "open" }
  /** `next` is what the fence becomes when this commit finishes: a revocation waits for it, a cancel passes it by. */
  | { readonly kind: "committing"; readonly commitNumber: number; readonly next: "open" | "revoked" }
  | { readonly kind: "closed"; readonly by: FenceClosure };

export type FenceEvent =
  | { readonly kind: "begin"; readonly commitNumber: number; readonly isLate: boolean }
  | { readonly kind: "finish"; readonly commitNumber: number }
  | { readonly kind: "cancel" }
  | { readonly kind: "revoke" };

export const openFence: FenceState = Object.freeze({ kind: "open" });

function closed(by: FenceClosure): FenceState {
  return { kind: "closed", by };
}

function afterOpen(state: FenceState, event: FenceEvent): FenceState {
  switch (event.kind) {
    case "begin":
      return event.isLate ? closed("deadline") : { kind: "committing", commitNumber: event.commitNumber, next: "open" };
    case "cancel":
      return closed("cancelled");
    case "revoke":
      return closed("revoked");
    case "finish":
      return state;
  }
}

function afterCommitting(state: FenceState & { kind: "committing" }, event: FenceEvent): FenceState {
  switch (event.kind) {
    case "finish":
      // The late `finish` of an older commit must not end the one that runs now.
      if (event.commitNumber !== state.commitNumber) return state;
      return state.next === "open" ? openFence : closed("revoked");
    case "revoke":
      return { ...state, next: "revoked" };
    case "begin":
    case "cancel":
      return state;
  }
}

/** The table of the owner file's header, as a pure function; an event that means nothing to a state changes nothing. */
export function nextFenceState(state: FenceState, event: FenceEvent): FenceState {
  switch (state.kind) {
    case "open":
      return afterOpen(state, event);
    case "committing":
      return afterCommitting(state, event);
    case "closed":
      return state;
  }
}
