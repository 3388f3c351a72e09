import { CodedError } from "@turnkeeper/kernel";
import type { SpoolStep, StateStore } from "@turnkeeper/state-store";

/** A store that a test breaks and mends: while it is broken every call fails with its code, but those to the spool. */
export interface FailingStore extends StateStore {
  /** The code that every call fails with; undefined: the store works. */
  code: string | undefined;
  /** What was given to the spool. */
  readonly kept: readonly SpoolStep[];
}

function failingPort<Port extends object>(port: Port, failing: () => string | undefined): Port {
  return new Proxy(port, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]): Promise<unknown> => {
        const code = failing();
        if (code !== undefined) throw new CodedError(code, `Could not ${String(name)} in the store: it is broken.`);
        return Reflect.apply(member, target, args) as unknown;
      };
    },
  });
}

/** `spool` takes the place of the store's own: how a test breaks it, or leaves it out. */
export function failingStore(store: StateStore, spool: Partial<StateStore["spool"]> = {}): FailingStore {
  const kept: SpoolStep[] = [];
  let code: string | undefined;
  const port = <Port extends object>(one: Port): Port => failingPort(one, () => code);
  return {
    sessions: port(store.sessions),
    leases: port(store.leases),
    transcript: port(store.transcript),
    inbox: port(store.inbox),
    turns: port(store.turns),
    spool: {
      keep: async (step) => {
        kept.push(step);
        return (spool.keep ?? ((one: SpoolStep) => store.spool.keep(one)))(step);
      },
      waiting: (sessionId) => store.spool.waiting(sessionId),
    },
    check: () => store.check(),
    close: () => store.close(),
    kept,
    get code() {
      return code;
    },
    set code(next) {
      code = next;
    },
  };
}
