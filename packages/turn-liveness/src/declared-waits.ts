import { CodedError } from "@turnkeeper/kernel";
import type { TurnLivenessErrorCode } from "./errors.ts";

export type WaitKind = "model" | "tool" | "approval" | "child";

/** A silence announced beforehand: what is waited for, and for how long it may stay silent. */
export interface WaitDeclaration {
  readonly kind: WaitKind;
  readonly name: string;
  /** Milliseconds of silence it may take, counted anew from any progress; finite, above 0. */
  readonly boundMs: number;
}

/** A wait that has not been disposed, as an observer sees it. */
export interface OpenWait extends WaitDeclaration {
  /** Milliseconds until it stops counting as evidence; 0 or less when its bound has passed. */
  readonly endsInMs: number;
}

/** Where the bound of a wait counts from. Shared by the waits that are one wait tried again. */
interface Anchor {
  startMs: number;
}

interface Wait extends WaitDeclaration {
  readonly anchor: Anchor;
}

/** The waits of one turn. They hold no timer: a bound is looked at, it does not go off. */
export interface DeclaredWaits {
  declare(declaration: WaitDeclaration, nowMs: number): Disposable;
  /** Whether any wait is inside its bound, where progress was last seen at `seenAtMs`. */
  hold(nowMs: number, seenAtMs: number): boolean;
  views(nowMs: number, seenAtMs: number): readonly OpenWait[];
  /** A retry is no progress, but progress makes every later declaration a new wait. */
  onProgressSeen(): void;
  excuse(gapMs: number, nowMs: number): void;
}

function checkBound({ kind, name, boundMs }: WaitDeclaration): void {
  if (Number.isFinite(boundMs) && boundMs > 0) return;
  const message = `The bound of the declared wait for ${kind} ${name} must be a finite number of milliseconds above 0, got ${boundMs}. A wait without an end would hide a stuck turn.`;
  throw new CodedError<TurnLivenessErrorCode>("OPTION_INVALID", message, { context: { kind, name } });
}

export function createDeclaredWaits(): DeclaredWaits {
  const open = new Set<Wait>();
  const anchors = new Map<string, Anchor>();
  const endMs = (wait: Wait, seenAtMs: number): number => Math.max(wait.anchor.startMs, seenAtMs) + wait.boundMs;
  return {
    declare: (declaration, nowMs) => {
      checkBound(declaration);
      const { kind, name, boundMs } = declaration;
      // The same wait declared again without progress in between is a retry: it does not get its time a second time,
      // or a loop of failing attempts would be excused for ever.
      const key = `${kind} ${name}`;
      const anchor = anchors.get(key) ?? { startMs: nowMs };
      anchors.set(key, anchor);
      const wait: Wait = { kind, name, boundMs, anchor };
      open.add(wait);
      return { [Symbol.dispose]: () => void open.delete(wait) };
    },
    hold: (nowMs, seenAtMs) => {
      for (const wait of open) if (endMs(wait, seenAtMs) > nowMs) return true;
      return false;
    },
    views: (nowMs, seenAtMs) =>
      Array.from(open, (wait) => {
        const { kind, name, boundMs } = wait;
        return { kind, name, boundMs, endsInMs: endMs(wait, seenAtMs) - nowMs };
      }),
    onProgressSeen: () => anchors.clear(),
    excuse: (gapMs, nowMs) => {
      const moved = new Set([...anchors.values(), ...Array.from(open, (wait) => wait.anchor)]);
      for (const anchor of moved) anchor.startMs = Math.min(nowMs, anchor.startMs + gapMs);
    },
  };
}
