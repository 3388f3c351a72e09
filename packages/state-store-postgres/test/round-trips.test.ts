import pg from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { freshSchema, noServer, serverUrl } from "./postgres-harness.ts";
import { openHandle, says, startTurn } from "./scene.ts";

/** How many statements are sent, each a round trip, while this runs. */
async function statementsOf(act: () => Promise<unknown>): Promise<number> {
  const query = vi.spyOn(pg.Client.prototype, "query");
  onTestFinished(() => query.mockRestore());
  await act();
  const { length } = query.mock.calls;
  query.mockRestore();
  return length;
}

describe.skipIf(noServer)("round trips", () => {
  test("a step of a turn is one, a turn with three steps is nine, and a renewal is one", async () => {
    const store = await openHandle(serverUrl, { schema: freshSchema() });
    // Its session is there, and a connection is open.
    const first = await startTurn(store, "a");
    await store.turns.end({ ...first, outcome: "answered", release: true });
    const counts: Record<string, number> = {};
    const counted = async <T>(name: string, act: () => Promise<T>): Promise<T> => {
      let answer: T | undefined;
      counts[name] = await statementsOf(async () => (answer = await act()));
      return answer as T;
    };
    const { grant, turnId } = await counted("offer and grant", () => startTurn(store, "b"));
    for (const key of ["first step", "second step", "third step"])
      await counted(key, () => store.transcript.append({ grant, turnId, entries: [says(key)] }));
    await counted("renewal", () => store.leases.renew(grant, 60_000));
    await counted("end", () => store.turns.end({ grant, turnId, outcome: "answered", release: true }));
    expect(counts).toEqual({
      "offer and grant": 4,
      "first step": 1,
      "second step": 1,
      "third step": 1,
      renewal: 1,
      end: 2,
    });
  });
});
