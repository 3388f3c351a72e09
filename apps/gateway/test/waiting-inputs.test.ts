import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import { expect, it } from "vitest";
import { openGateway, until } from "./inside/open-gateway.ts";

const nobody = { runnerId: "gone", instanceId: "gone", host: "elsewhere", bootId: "another boot", pid: 1 };

it("inputs that a dead process left are run by the gateway that starts next, each once", async () => {
  const store = createMemoryStore({ host: systemHost });
  for (const sessionId of ["a", "b"]) {
    await store.inbox.offer({ sessionId, inputId: "i", text: "Hi", onBusy: "wait", runner: nobody });
    await store.inbox.abandon(sessionId, nobody.runnerId);
  }
  await openGateway([{ text: "one" }, { text: "two" }], {}, { store });
  const isAnswered = async (sessionId: string): Promise<boolean> =>
    (await store.inbox.read(sessionId, "i"))?.state === "settled";
  await until(async () => (await isAnswered("a")) && (await isAnswered("b")));
  for (const sessionId of ["a", "b"]) {
    expect(await store.inbox.read(sessionId, "i")).toMatchObject({ end: "answered" });
    expect((await store.sessions.records(sessionId))?.turns).toHaveLength(1);
  }
});
