import { CodedError } from "@turnkeeper/kernel";
import { describe, expect, it } from "vitest";
import { eventOf, httpServer, socketServer, startStream } from "./loopback-server.ts";
import { answerOf, compatibleAt, opened, prompt, streamParts } from "./model-answer.ts";
import { chatText } from "./written-streams.ts";

// Real sockets need real time; these bounds keep it short.
const short = { silenceMs: 100, graceMs: 50 } as const;
// Where nothing may run out, the gaps stay far below the bound: a busy machine delays timers and data by turns.
const patient = { silenceMs: 1500, graceMs: 500 } as const;
const gapMs = 350;
const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const chunkOf = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

async function failure(work: Promise<unknown>): Promise<CodedError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!CodedError.is(error)) throw new Error("expected a coded error", { cause: error });
  return error;
}

describe("a server that goes silent", () => {
  const places: Readonly<Record<string, string>> = {
    "before the headers": "",
    "in the middle of the headers": "HTTP/1.1 200 OK\r\ncontent-type: text/ev",
    "behind the headers": head,
    "behind the first word": `${head}${chunkOf(eventOf(chatText[1]!, "openai"))}`,
    "behind the headers of an error": "HTTP/1.1 500 Oops\r\ncontent-length: 99\r\n\r\n{",
  };

  // All places at once: the transport's timers tick twice a second, so each of them costs a second.
  it(`costs its bound and is then an error, ${Object.keys(places).join(", ")}`, async () => {
    const costs = Object.entries(places).map(async ([place, sent]) => {
      const sockets: Promise<unknown>[] = [];
      const server = await socketServer((socket) => {
        sockets.push(new Promise((resolve) => socket.once("close", resolve)));
        socket.write(sent);
      });
      const model = await compatibleAt(server.url, short);
      const error = await failure(streamParts(model.languageModel));
      expect(error, `${place}`).toMatchObject({ code: "MODEL_TIMEOUT", context: { retryable: true } });
      expect(error.message, `${place}`).toContain("openai-compatible/some-model was silent for 0.15 s");
      // The connection goes with it, and nothing was tried again.
      await Promise.all(sockets);
      expect(sockets, `${place}`).toHaveLength(1);
    });
    await Promise.all(costs);
  });

  it("is waited for as long as its words keep coming, however long the whole answer takes", async () => {
    const server = await httpServer(async (_request, response) => {
      startStream(response);
      for (const line of [chatText[0]!, ...chatText]) {
        await new Promise((resolve) => setTimeout(resolve, gapMs));
        response.write(eventOf(line, "openai"));
      }
      response.end("data: [DONE]\n\n");
    });
    const model = await compatibleAt(server.url, patient);
    expect(answerOf(await streamParts(model.languageModel)).text).toBe("Grüße, 世界!");
  });
});

it("keep-alive comments hold the transport, and yield no part that a watchdog could take for progress", async () => {
  let startedMs = Infinity;
  const server = await httpServer(async (_request, response) => {
    startedMs = performance.now();
    startStream(response);
    response.write(eventOf(chatText[0]!, "openai"));
    for (let count = 0; count < 8; count++) {
      await new Promise((resolve) => setTimeout(resolve, gapMs));
      response.write(": keep-alive\n\n");
    }
    response.end(
      `${chatText
        .slice(1)
        .map((line) => eventOf(line, "openai"))
        .join("")}data: [DONE]\n\n`,
    );
  });
  const model = await compatibleAt(server.url, patient);
  const { stream } = await model.languageModel.doStream({ prompt });
  const seen: { readonly type: string; readonly afterMs: number }[] = [];
  for await (const part of stream) seen.push({ type: part.type, afterMs: performance.now() - startedMs });
  const firstText = seen.findIndex(({ type }) => type === "text-delta");
  expect(seen.slice(0, firstText).map(({ type }) => type)).toEqual(["stream-start", "response-metadata", "text-start"]);
  // Eight comments are longer than the bound.
  expect(seen[firstText]!.afterMs).toBeGreaterThan(2000);
});

describe("the bound of a model wait", () => {
  it("is what was set for the provider, else for all, else none of the model's own", async () => {
    const providers = { "openai-compatible": { baseUrl: "http://127.0.0.1:8099/v1", silenceMs: 1500 } };
    expect((await opened("openai-compatible/m", { providers, silenceMs: 7000 })).silenceMs).toBe(1500);
    expect(
      (
        await opened("openai-compatible/m", {
          providers: { "openai-compatible": { baseUrl: "http://127.0.0.1:8099/v1" } },
          silenceMs: 7000,
        })
      ).silenceMs,
    ).toBe(7000);
    expect(
      await opened("openai-compatible/m", {
        providers: { "openai-compatible": { baseUrl: "http://127.0.0.1:8099/v1" } },
      }),
    ).not.toHaveProperty("silenceMs");
  });
});
