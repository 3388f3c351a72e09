import { expect, it } from "vitest";
import { makeHome, runCli } from "./outside/built-cli.ts";
import { EventReader } from "./outside/event-reader.ts";
import {
  compatibleConfig,
  makeGate,
  openAiCall,
  openAiGatedText,
  openAiText,
  serveModel,
} from "./outside/model-server.ts";
import type { ModelRequest } from "./outside/model-server.ts";
import { startGateway } from "./outside/started-gateway.ts";
import type { Gateway } from "./outside/started-gateway.ts";

async function kill({ process }: Gateway): Promise<void> {
  process.child.kill("SIGKILL");
  await process.ended;
}

const complete = (gateway: Gateway, body: object): Promise<Response> =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-session-id": "s" },
    body: JSON.stringify({ model: "openai-compatible/test", ...body }),
  });

/** Asks until it is so. */
async function eventually<T>(ask: () => Promise<T>, isSo: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (isSo(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

interface Shown {
  readonly inputs: readonly { readonly inputId: string; readonly state?: string; readonly end?: string }[];
  readonly turns: readonly { readonly state: string }[];
}

const tool = { type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } };

function askedWith({ body }: ModelRequest): unknown {
  const tools = body["tools"] as readonly { readonly function: { readonly name: string } }[] | undefined;
  return {
    system: body.messages.find(({ role }) => role === "system")?.content,
    tools: tools?.map((one) => one.function.name),
    seed: body["seed"],
  };
}

it("a request is run as it asked though its gateway is killed before its turn began, and the next one while its calls are out", async () => {
  const gate = makeGate();
  const answers = [openAiGatedText(gate, "half an ", "answer"), openAiCall("weather", "{}"), openAiText("It rains.")];
  const model = await serveModel(...answers);
  const home = makeHome(compatibleConfig(model));
  const [first, second] = [await startGateway({ home }), await startGateway({ home })];
  const shown = async (gateway: Gateway): Promise<Shown> =>
    (await (await fetch(`${gateway.url}/v1/sessions/s`)).json()) as Shown;

  // The session is busy in the second gateway: what the first one accepts waits there.
  const busy = new EventReader(
    await fetch(`${second.url}/v1/sessions/s/turns`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ input: "Hi" }),
    }),
  );
  await busy.until(({ type }) => type === "text.delta");
  const messages = [
    { role: "system", content: "Speak like a sailor." },
    { role: "user", content: "What is the weather?" },
  ];
  const lost = complete(first, { messages, tools: [tool], seed: 7 }).catch(() => undefined);
  await eventually(
    () => shown(second),
    ({ inputs }) => inputs.length === 2,
  );
  await kill(first);
  await lost;
  expect(model.requests).toHaveLength(1);
  gate.open();

  await eventually(
    () => shown(second),
    ({ turns }) => turns[1]?.state === "suspended",
  );
  const asked = { system: expect.stringContaining("Speak like a sailor.") as string, tools: ["weather"], seed: 7 };
  expect(model.requests.slice(1).map(askedWith)).toEqual([asked]);
  await kill(second);

  const third = await startGateway({ home });
  const result = { role: "tool", tool_call_id: "call_1", content: "rain" };
  const answered = await complete(third, { messages: [result] });
  expect(await answered.json()).toMatchObject({
    choices: [{ message: { content: "It rains." }, finish_reason: "stop" }],
  });
  expect(model.requests.slice(1).map(askedWith)).toEqual([asked, asked]);
  expect((await shown(third)).inputs).toMatchObject([{ end: "answered" }, { end: "answered" }]);
  expect(JSON.parse((await runCli(["sessions", "verify", "--json"], { home })).stdout)).toEqual({ violations: [] });
  third.process.child.kill("SIGTERM");
  expect(await third.process.ended).toMatchObject({ code: 0 });
});
