import { expect, it } from "vitest";
import { makeHome } from "./outside/built-cli.ts";
import { EventReader } from "./outside/event-reader.ts";
import { compatibleConfig, makeGate, openAiGatedText, serveModel } from "./outside/model-server.ts";
import { startGateway } from "./outside/started-gateway.ts";

it("a gateway that is killed in the middle of a stream: the next one tells the rest, the end as crashed, nothing twice", async () => {
  const server = await serveModel(openAiGatedText(makeGate(), "half an ", "answer"));
  const home = makeHome(compatibleConfig(server));
  const post = (url: string): Promise<Response> =>
    fetch(`${url}/v1/sessions/s/turns`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ input: "Hi", inputId: "i" }),
    });
  const first = await startGateway({ home });
  const before = new EventReader(await post(first.url));
  await before.until(({ type }) => type === "text.delta");
  expect(before.text).toBe("half an ");
  first.process.child.kill("SIGKILL");
  await first.process.ended;
  const second = await startGateway({ home });
  const headers = { "last-event-id": before.lastId };
  const after = new EventReader(await fetch(`${second.url}/v1/sessions/s/events`, { headers }));
  await after.until(({ type }) => type === "turn.finished");
  after.leave();
  expect(after.events).toMatchObject([{ type: "turn.finished", outcome: "interrupted", reason: "crashed" }]);
  const again = new EventReader(await post(second.url));
  await again.toItsEnd();
  expect(again.events.at(-1)).toMatchObject({ outcome: "interrupted", reason: "crashed" });
  const shown = (await (await fetch(`${second.url}/v1/sessions/s`)).json()) as { inputs: unknown[]; turns: unknown[] };
  expect(shown).toMatchObject({ inputs: [{ inputId: "i", end: "interrupted" }], turns: [{ reason: "crashed" }] });
  expect(shown.turns).toHaveLength(1);
  second.process.child.kill("SIGTERM");
  expect(await second.process.ended).toMatchObject({ code: 0 });
});
