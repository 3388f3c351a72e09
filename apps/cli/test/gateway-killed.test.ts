import { expect, it } from "vitest";
import { makeHome, startCli } from "./outside/built-cli.ts";
import { compatibleConfig, makeGate, openAiGatedText, serveModel } from "./outside/model-server.ts";

interface Told {
  readonly id: string;
  readonly event: {
    readonly type: string;
    readonly text?: string;
    readonly outcome?: string;
    readonly reason?: string;
  };
}

/** Reads a stream until `isEnough`, or until it breaks. */
async function read(response: Response, isEnough: (told: Told) => boolean): Promise<Told[]> {
  const all: Told[] = [];
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const next = await reader?.read();
      if (!next || next.done) return all;
      text += next.value;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const [, id = "", data] = /^id: (.*)\ndata: (.*)$/m.exec(text.slice(0, end)) ?? [];
        text = text.slice(end + 2);
        if (data === undefined) continue;
        all.push({ id, event: JSON.parse(data) as Told["event"] });
        const last = all.at(-1);
        if (last && isEnough(last)) return all;
      }
    }
  } catch {
    // The connection broke: that is what the test is about.
    return all;
  }
}

it("a gateway that is killed in the middle of a stream: the next one tells the rest, the end as crashed, nothing twice", async () => {
  const server = await serveModel(openAiGatedText(makeGate(), "half an ", "answer"));
  const home = makeHome(compatibleConfig(server));
  const start = async (): Promise<{ gateway: ReturnType<typeof startCli>; url: string }> => {
    const gateway = startCli(["gateway", "--port", "0"], { home });
    await gateway.sees(/Listening on (\S+)/);
    return { gateway, url: /Listening on (\S+)/.exec(gateway.stdout)?.[1] ?? "" };
  };
  const post = (url: string): Promise<Response> =>
    fetch(`${url}/v1/sessions/s/turns`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ input: "Hi", inputId: "i" }),
    });
  const first = await start();
  const before = await read(await post(first.url), ({ event }) => event.type === "text.delta");
  expect(before.at(-1)?.event.text).toBe("half an ");
  first.gateway.child.kill("SIGKILL");
  await first.gateway.ended;
  const second = await start();
  const lastId = before.at(-1)?.id ?? "";
  const isEnd = ({ event }: Told): boolean => event.type === "turn.finished";
  const headers = { "last-event-id": lastId };
  const after = await read(await fetch(`${second.url}/v1/sessions/s/events`, { headers }), isEnd);
  expect(after.map(({ event }) => [event.type, event.outcome, event.reason])).toEqual([
    ["turn.finished", "interrupted", "crashed"],
  ]);
  const again = await read(await post(second.url), isEnd);
  expect(again.at(-1)?.event).toMatchObject({ outcome: "interrupted", reason: "crashed" });
  const shown = (await (await fetch(`${second.url}/v1/sessions/s`)).json()) as { inputs: unknown[]; turns: unknown[] };
  expect(shown).toMatchObject({ inputs: [{ inputId: "i", end: "interrupted" }], turns: [{ reason: "crashed" }] });
  expect(shown.turns).toHaveLength(1);
  second.gateway.child.kill("SIGTERM");
  expect(await second.gateway.ended).toMatchObject({ code: 0 });
});
