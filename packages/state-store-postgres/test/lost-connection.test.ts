import { verifyRecords } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { startCuttingProxy } from "./cutting-proxy.ts";
import type { Cut, CuttingProxy } from "./cutting-proxy.ts";
import { freshSchema, noServer, serverUrl } from "./postgres-harness.ts";
import { keysOf, offer, openHandle, says, startTurn, urlThrough } from "./scene.ts";
import type { Turn } from "./scene.ts";

async function proxy(): Promise<CuttingProxy> {
  const started = await startCuttingProxy(Number(new URL(serverUrl).port));
  onTestFinished(() => started.close());
  return started;
}

/** Makes the store of a schema forget the names of its writes, as if there were none. */
async function withoutReceipts(schema: string): Promise<void> {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  await admin.query(`
    CREATE FUNCTION "${schema}".forget() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN NEW.receipts := ''{}''; RETURN NEW; END';
    CREATE TRIGGER forget BEFORE UPDATE ON "${schema}".lease FOR EACH ROW EXECUTE FUNCTION "${schema}".forget()`);
  await admin.end();
}

/** A turn takes its one steer, and the answer to that is cut. */
async function steersAfterLostAnswer(schema: string): Promise<readonly string[]> {
  const cutting = await proxy();
  const store = await openHandle(urlThrough(cutting.port), { schema });
  const { grant, turnId } = await startTurn(store, "a");
  await offer(store, "steer-1", "steer");
  cutting.cutNext("save_session", "after");
  const taken = await store.inbox.takeSteers(grant, turnId);
  expect(cutting.isCut).toBe(true);
  expect(await keysOf(store)).toEqual(["input/input-a", "input/steer-1"]);
  return taken.kind === "taken" ? taken.inputs.map(({ inputId }) => inputId) : [taken.kind];
}

/** Runs a call whose answer is cut, and lets others write so often before it asks again that no name of it is left. */
async function forgottenBeforeItAsks<T>(
  schema: string,
  call: (store: StateStore, turn: Turn) => Promise<T>,
): Promise<T> {
  const cutting = await proxy();
  const store = await openHandle(urlThrough(cutting.port), { schema });
  const others = await openHandle(serverUrl, { schema });
  const turn = await startTurn(store, "a");
  await offer(others, "of-others");
  await offer(others, "steer", "steer");
  const isCut = cutting.cutOffAfter("save_session");
  const answer = call(store, turn);
  await isCut;
  for (let count = 0; count < 9; count++) await others.sessions.setTitle("session-1", `title ${count}`);
  cutting.cutAll(false);
  return await answer;
}

const repeatable: readonly [name: string, call: (store: StateStore, turn: Turn) => Promise<unknown>, told: unknown][] =
  [
    [
      "a step",
      (store, turn) => store.transcript.append({ ...turn, entries: [says("step")] }),
      expect.objectContaining({ kind: "committed" }),
    ],
    [
      "a turn's end",
      (store, turn) => store.turns.end({ ...turn, outcome: "answered", release: true }),
      expect.objectContaining({ kind: "ended" }),
    ],
    [
      "a turn's beginning",
      (store, { grant, turnId }) => store.turns.begin(grant, turnId, ["of-others"]),
      expect.objectContaining({ kind: "begun", inputs: [expect.objectContaining({ inputId: "of-others" })] }),
    ],
    ["orphans made", (store) => store.inbox.abandon("session-1", "runner-1"), 0],
  ];

describe.skipIf(noServer)("a connection that is cut", () => {
  test.each(repeatable)(
    "until nothing tells any more whether it was written: %s is decided again, and answered with what stands",
    async (_name, call, told) => {
      const schema = freshSchema();
      expect(await forgottenBeforeItAsks(schema, call)).toEqual(told);
      const records = await (await openHandle(serverUrl, { schema })).sessions.records("session-1");
      expect(records && verifyRecords(records)).toEqual([]);
    },
  );

  test("until nothing tells any more whether it was written: what would take again what it took is not decided again", async () => {
    const steers = forgottenBeforeItAsks(freshSchema(), (store, { grant, turnId }) =>
      store.inbox.takeSteers(grant, turnId),
    );
    await expect(steers).rejects.toMatchObject({ code: "STORE_IO", context: { isIndeterminate: true } });
  });

  test.each<Cut>(["before", "after"])("%s a step: the step is stored once, and answered", async (cut) => {
    const cutting = await proxy();
    const store = await openHandle(urlThrough(cutting.port), { schema: freshSchema() });
    const { grant, turnId } = await startTurn(store, "a");
    for (const number of [1, 2, 3]) {
      cutting.cutNext("save_session", cut);
      const entries = [says(`step-${number}`)];
      expect((await store.transcript.append({ grant, turnId, entries })).kind).toBe("committed");
      expect(cutting.isCut).toBe(true);
    }
    expect(await keysOf(store)).toEqual(["input/input-a", "step-1", "step-2", "step-3"]);
    cutting.cutNext("save_session", cut);
    const end = await store.turns.end({ grant, turnId, outcome: "answered", release: true });
    expect(end).toMatchObject({ kind: "ended", pendingCount: 0 });
    const records = await store.sessions.records("session-1");
    expect(records && verifyRecords(records)).toEqual([]);
  });

  test("APPEND-3: what a write had taken is answered though its first answer was lost", async () => {
    expect(await steersAfterLostAnswer(freshSchema())).toEqual(["steer-1"]);
  });

  test("APPEND-3 control: without the names of its writes a steer that was taken is answered to nobody", async () => {
    const schema = freshSchema();
    await (await openHandle(serverUrl, { schema })).close();
    await withoutReceipts(schema);
    expect(await steersAfterLostAnswer(schema)).toEqual([]);
  });

  test.each<Cut>(["before", "after"])("%s a grant: it is granted once, under one token", async (cut) => {
    const cutting = await proxy();
    const store = await openHandle(urlThrough(cutting.port), { schema: freshSchema() });
    cutting.cutNext("ttl_from_now", cut);
    const { grant } = await startTurn(store, "a");
    expect(cutting.isCut).toBe(true);
    expect(grant.fencingToken).toBe(1);
    expect(await store.leases.read("session-1")).toMatchObject({ fencingToken: 1, standing: "live" });
  });

  test.each<Cut>(["before", "after"])("%s an offer: the input is accepted once, and its number told", async (cut) => {
    const cutting = await proxy();
    const store = await openHandle(urlThrough(cutting.port), { schema: freshSchema() });
    cutting.cutNext("save_session", cut);
    const answer = await offer(store, "input-1");
    expect(cutting.isCut).toBe(true);
    const [pending] = await store.inbox.pending("session-1");
    expect(answer).toEqual({ kind: "accepted", input: pending });
  });

  test.each<Cut>(["before", "after"])("%s a renewal or a read: they are asked again", async (cut) => {
    const cutting = await proxy();
    const store = await openHandle(urlThrough(cutting.port), { schema: freshSchema() });
    const { grant } = await startTurn(store, "a");
    cutting.cutNext("renew_lease", cut);
    expect(await store.leases.renew(grant, 60_000)).toEqual({ kind: "renewed" });
    cutting.cutNext("row_to_json", cut);
    expect(await store.leases.read("session-1")).toMatchObject({ fencingToken: 1 });
    expect(cutting.isCut).toBe(true);
  });

  test("without a word, so that no answer comes: after a while it counts as cut", async () => {
    const cutting = await proxy();
    const store = await openHandle(urlThrough(cutting.port), { schema: freshSchema(), answerMs: 300 });
    const { grant, turnId } = await startTurn(store, "a");
    cutting.cutNext("save_session", "half");
    expect((await store.transcript.append({ grant, turnId, entries: [says("step")] })).kind).toBe("committed");
    expect(cutting.isCut).toBe(true);
    expect(await keysOf(store)).toEqual(["input/input-a", "step"]);
  });

  test("with all others at once, idle ones too: new ones take their place, and steps keep their order", async () => {
    const cutting = await proxy();
    const store = await openHandle(urlThrough(cutting.port), { schema: freshSchema() });
    const { grant, turnId } = await startTurn(store, "a");
    cutting.cutAll(false);
    const steps = Array.from({ length: 20 }, (_, index) => says(`step-${index}`));
    await Promise.all(steps.map((step) => store.transcript.append({ grant, turnId, entries: [step] })));
    expect(await keysOf(store)).toEqual(["input/input-a", ...steps.map(({ key }) => key)]);
  });
});
