import { getEventListeners } from "node:events";
import { systemHost, CodedError } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { ResolvedModel } from "@turnkeeper/models";
import { resolveModel } from "@turnkeeper/models";
import { describe, expect, it } from "vitest";
import { bodyOf, eventOf, httpServer, socketServer, startStream } from "./loopback-server.ts";
import type { LoopbackServer } from "./loopback-server.ts";
import { compatibleAt, opened, prompt, streamParts } from "./model-answer.ts";
import { anthropicText, chatText, responsesCall } from "./written-streams.ts";

const stop = new CodedError("TURN_STOPPED", "The user stopped the turn.");

/** A server that sends these bytes of a stream and then holds the connection. */
const holding = (sent: string): Promise<LoopbackServer> =>
  httpServer((_request, response) => {
    if (sent === "no headers") return;
    startStream(response);
    response.write(sent === "" ? ": nothing yet\n\n" : sent);
  });

const providers: readonly (readonly [string, readonly string[], (url: string) => Promise<ResolvedModel>])[] = [
  ["chat", chatText, (url) => compatibleAt(url)],
  [
    "anthropic",
    anthropicText,
    (url) => opened("anthropic/claude-x", { env: { ANTHROPIC_API_KEY: "key-1", ANTHROPIC_BASE_URL: url } }),
  ],
  [
    "responses",
    responsesCall,
    (url) =>
      opened("openai/gpt-x", {
        env: { OPENAI_API_KEY: "key-1" },
        providers: { openai: { baseUrl: url, api: "responses" } },
      }),
  ],
];

describe.each(providers)("an abort of a %s call", (_name, lines, modelAt) => {
  it.each(["no headers", ""])("closes the socket while the answer has not begun (%j)", async (sent) => {
    const server = await holding(sent);
    const model = await modelAt(server.url);
    const controller = new AbortController();
    const reading = streamParts(model.languageModel, { abortSignal: controller.signal });
    const request = await server.firstRequest;
    controller.abort(stop);
    await expect(reading).rejects.toMatchObject({ code: "MODEL_ABORTED", cause: stop, context: { retryable: false } });
    await request.closed;
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("closes the socket in the middle of the answer", async () => {
    const server = await holding(
      lines
        .slice(0, 4)
        .map((line) => eventOf(line, "anthropic"))
        .join(""),
    );
    const model = await modelAt(server.url);
    const controller = new AbortController();
    const { stream } = await model.languageModel.doStream({ prompt, abortSignal: controller.signal });
    const reader = stream.getReader();
    for (let type = ""; type !== "text-delta";) type = (await reader.read()).value?.type ?? "";
    const next = reader.read();
    controller.abort(stop);
    await expect(next).rejects.toMatchObject({ code: "MODEL_ABORTED", cause: stop });
    await (
      await server.firstRequest
    ).closed;
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("that came before the call sends nothing", async () => {
    const server = await holding("");
    const model = await modelAt(server.url);
    await expect(model.languageModel.doStream({ prompt, abortSignal: AbortSignal.abort(stop) })).rejects.toMatchObject({
      code: "MODEL_ABORTED",
      cause: stop,
    });
    expect(server.requests).toEqual([]);
  });

  it("by a consumer that stops reading closes the socket too", async () => {
    const server = await holding(
      lines
        .slice(0, 4)
        .map((line) => eventOf(line, "anthropic"))
        .join(""),
    );
    const model = await modelAt(server.url);
    const { stream } = await model.languageModel.doStream({ prompt });
    for await (const part of stream) if (part.type === "text-delta") break;
    await (
      await server.firstRequest
    ).closed;
  });
});

it("parts that had already arrived are not handed out after the abort", async () => {
  const server = await holding(chatText.map((line) => eventOf(line, "openai")).join(""));
  const model = await compatibleAt(server.url);
  const controller = new AbortController();
  const { stream } = await model.languageModel.doStream({ prompt, abortSignal: controller.signal });
  const reader = stream.getReader();
  await reader.read();
  controller.abort(stop);
  await expect(reader.read()).rejects.toMatchObject({ code: "MODEL_ABORTED" });
});

it("a hundred calls leave no listener on the turn's signal, and each has one while it runs", async () => {
  const server = await httpServer((_request, response) => {
    startStream(response);
    response.end(bodyOf(chatText, "openai"));
  });
  const model = await compatibleAt(server.url);
  const { signal } = new AbortController();
  for (let count = 0; count < 100; count++) {
    const { stream } = await model.languageModel.doStream({ prompt, abortSignal: signal });
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    for await (const _part of stream);
  }
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

it("a failed call leaves no listener either", async () => {
  const server = await socketServer((socket) => socket.end("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"));
  const model = await compatibleAt(server.url);
  const { signal } = new AbortController();
  await expect(streamParts(model.languageModel, { abortSignal: signal })).rejects.toMatchObject({
    code: "MODEL_SERVER",
  });
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

describe("closing a model", () => {
  it("breaks off what runs, closes its sockets, and later calls are told", async () => {
    const server = await holding(eventOf(chatText[1]!, "openai"));
    const model = await compatibleAt(server.url);
    const { stream } = await model.languageModel.doStream({ prompt });
    const reading = (async () => {
      for await (const _part of stream);
    })();
    await server.firstRequest;
    const failed = reading.catch((error: unknown) => error);
    await model.close();
    await model.close();
    expect(await failed).toMatchObject({ code: "MODEL_CLOSED", context: { retryable: false } });
    await (
      await server.firstRequest
    ).closed;
    await expect(model.languageModel.doStream({ prompt })).rejects.toMatchObject({ code: "MODEL_CLOSED" });
    expect(server.requests).toHaveLength(1);
  });

  it("is what `await using` does", async () => {
    const server = await holding("");
    let kept: ResolvedModel;
    {
      await using model = await resolveModel("openai-compatible/m", {
        host: systemHost,
        providers: { "openai-compatible": { baseUrl: server.url } },
      });
      kept = model;
    }
    await expect(kept.languageModel.doStream({ prompt })).rejects.toMatchObject({ code: "MODEL_CLOSED" });
  });

  it("leaves no timer behind", async () => {
    const host = virtualHost();
    const server = await httpServer((_request, response) => {
      startStream(response);
      response.end(bodyOf(chatText, "openai"));
    });
    const model = await resolveModel("openai-compatible/m", {
      host,
      providers: { "openai-compatible": { baseUrl: server.url } },
    });
    await streamParts(model.languageModel);
    await model.close();
    await host.settle();
    expect(host.pendingTimerCount()).toBe(0);
  });
});
