import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { AppendRequest, AppendResult, EndRequest, EndResult, StateStore } from "@turnkeeper/state-store";

/** One write of a turn: how long it took, and how it came out. */
export interface MeasuredWrite {
  readonly kind: "append" | "end";
  readonly durationMs: number;
  /** `stale-token`: refused by its fencing token. `failed`: by the store, under `code`. */
  readonly outcome: "committed" | "stale-token" | "failed";
  readonly code?: string;
}

type Listener = (write: MeasuredWrite) => void;

/** A store that tells how long a turn's writes take. Give the same one to the agent and to the gateway. */
export class MeasuredStore implements StateStore {
  readonly sessions: StateStore["sessions"];
  readonly leases: StateStore["leases"];
  readonly transcript: StateStore["transcript"];
  readonly inbox: StateStore["inbox"];
  readonly turns: StateStore["turns"];
  readonly spool: StateStore["spool"];
  readonly #store: StateStore;
  readonly #host: Host;
  readonly #listeners = new Set<Listener>();

  constructor(store: StateStore, host: Host) {
    this.#store = store;
    this.#host = host;
    this.sessions = store.sessions;
    this.leases = store.leases;
    this.inbox = store.inbox;
    this.spool = store.spool;
    this.transcript = withMethods(store.transcript, {
      append: (request: AppendRequest): Promise<AppendResult> =>
        this.#measured("append", () => store.transcript.append(request)),
    });
    this.turns = withMethods(store.turns, {
      end: (request: EndRequest): Promise<EndResult> => this.#measured("end", () => store.turns.end(request)),
    });
  }

  onWrite(listener: Listener): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  check(): Promise<void> {
    return this.#store.check();
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #measured<Result extends { readonly kind: string }>(
    kind: MeasuredWrite["kind"],
    write: () => Promise<Result>,
  ): Promise<Result> {
    const startedAtMs = this.#host.clock.monotonicMs();
    const tell = (outcome: MeasuredWrite["outcome"], code?: string): void => {
      const durationMs = this.#host.clock.monotonicMs() - startedAtMs;
      const told = { kind, durationMs, outcome, ...(code === undefined ? {} : { code }) };
      for (const listener of this.#listeners) listener(told);
    };
    try {
      const result = await write();
      tell(result.kind === "stale-token" ? "stale-token" : "committed");
      return result;
    } catch (error) {
      tell("failed", CodedError.is(error) ? error.code : "INTERNAL");
      throw error;
    }
  }
}

/** The port with some of its methods in place of its own; the others are called on the port itself. */
function withMethods<Port extends object>(port: Port, methods: Partial<Port>): Port {
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(methods, name) ?? Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
