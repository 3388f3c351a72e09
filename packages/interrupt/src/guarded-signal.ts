import { setMaxListeners } from "node:events";
import { CodedError, messageOf } from "@turnkeeper/kernel";
import type { FaultReporter, InterruptErrorCode } from "./errors.ts";

/** An abort signal whose listeners can hurt neither each other nor the process. */
export interface GuardedSignal {
  readonly signal: AbortSignal;
  abort(reason: CodedError<InterruptErrorCode>): void;
}

type Listener = Parameters<AbortSignal["addEventListener"]>[1];
type ListenerOptions = Parameters<AbortSignal["addEventListener"]>[2];

/**
 * Makes a signal that may be handed to tools and clients we do not know.
 *
 * Node runs the other listeners when one throws, but then raises the error as an uncaught exception, which ends the
 * process and every other turn in it. So each listener is wrapped where it is added: a throw, or a rejection of an
 * async one, is reported. `removeEventListener`, `once` and adding the same listener twice work as ever.
 */
export function createGuardedSignal(name: string, report: FaultReporter): GuardedSignal {
  const controller = new AbortController();
  const { signal } = controller;
  // As many as the turn has calls at once: each takes its own away, and none of them is a leak.
  setMaxListeners(0, signal);
  const guards = new WeakMap<NonNullable<Listener>, (event: Event) => void>();
  const fail = (error: unknown): void => {
    const message = `A listener on the turn's ${name} failed: ${messageOf(error)}. The stop went on without it; fix the listener.`;
    report(new CodedError("LISTENER_FAILED", message, { cause: error, context: { signal: name } }));
  };
  const guardOf = (listener: NonNullable<Listener>): ((event: Event) => void) => {
    const known = guards.get(listener);
    if (known) return known;
    const guard = (event: Event): void => {
      try {
        const answer: unknown =
          typeof listener === "function" ? listener.call(signal, event) : listener.handleEvent(event);
        if (answer instanceof Promise) answer.catch(fail);
      } catch (error) {
        fail(error);
      }
    };
    guards.set(listener, guard);
    return guard;
  };
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  Object.defineProperties(signal, {
    addEventListener: {
      value: (type: string, listener: Listener, options?: ListenerOptions) =>
        add(type, listener && guardOf(listener), options),
    },
    removeEventListener: {
      value: (type: string, listener: Listener, options?: ListenerOptions) =>
        remove(type, listener && guardOf(listener), options),
    },
  });
  return { signal, abort: (reason) => controller.abort(reason) };
}
