import type { StateStore } from "../state-store.ts";
import type { ConformanceHarness } from "./conformance-case.ts";

type PortName = Exclude<keyof StateStore, "close">;

function crashing(harness: ConformanceHarness, opened: StateStore): StateStore {
  let store = opened;
  let isClosed = false;
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <Answer>(act: () => Promise<Answer>): Promise<Answer> => {
    const answer = last.then(act);
    last = answer.catch(() => undefined);
    return answer;
  };
  const port = <Name extends PortName>(name: Name): StateStore[Name] =>
    new Proxy(opened[name], {
      get:
        (_opened, method) =>
        (...args: unknown[]): Promise<unknown> =>
          inTurn(async () => {
            if (!isClosed) store = await harness.reopen();
            const call: unknown = Reflect.get(store[name], method);
            if (typeof call !== "function") throw new TypeError(`No method ${String(method)} in ${name}.`);
            return Reflect.apply(call, store[name], args) as unknown;
          }),
    });
  return {
    sessions: port("sessions"),
    leases: port("leases"),
    transcript: port("transcript"),
    inbox: port("inbox"),
    turns: port("turns"),
    spool: port("spool"),
    check: () => inTurn(() => store.check()),
    close: () =>
      inTurn(() => {
        isClosed = true;
        return store.close();
      }),
  };
}

/**
 * The same harness, with a crash before every call: whatever a store acknowledged must be there for the next process.
 * Every conformance case holds under it.
 */
export function crashBetweenCalls(harness: ConformanceHarness): ConformanceHarness {
  return {
    host: harness.host,
    open: async () => crashing(harness, await harness.open()),
    reopen: async () => crashing(harness, await harness.reopen()),
  };
}
