import type { LanguageModelV3, LanguageModelV3StreamPart, LanguageModelV3StreamResult } from "@ai-sdk/provider";
import { CodedError } from "@turnkeeper/kernel";
import { customModel, describeModelError } from "@turnkeeper/models";
import { describe, expect, it } from "vitest";
import { answerOf, prompt, streamParts } from "./model-answer.ts";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const finish = { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage } as const;
const text = { type: "text-delta", id: "0", delta: "Hi" } as const;

function modelOf(
  stream: () => ReadableStream<LanguageModelV3StreamPart> | Promise<ReadableStream<LanguageModelV3StreamPart>>,
): LanguageModelV3 {
  const doStream = async (): Promise<LanguageModelV3StreamResult> => ({ stream: await stream() });
  return {
    specificationVersion: "v3",
    provider: "mine",
    modelId: "m-1",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("not used")),
    doStream,
  };
}

const parts = (...list: LanguageModelV3StreamPart[]): LanguageModelV3 =>
  modelOf(
    () =>
      new ReadableStream({
        start: (controller) => {
          for (const part of list) controller.enqueue(part);
          controller.close();
        },
      }),
  );

describe("a custom model", () => {
  it("is called by its provider and model, or as it is told", () => {
    expect(customModel(parts()).id).toBe("mine/m-1");
    expect(customModel(parts(), "house/model").id).toBe("house/model");
  });

  it("streams what the model streams, and need not say why it ended", async () => {
    const finishOther = { ...finish, finishReason: { unified: "other", raw: undefined } } as const;
    expect(answerOf(await streamParts(customModel(parts(text, finish)).languageModel)).text).toBe("Hi");
    expect(answerOf(await streamParts(customModel(parts(text, finishOther)).languageModel)).finish).toBe("other");
  });

  it("that stops without a finish part is an error, as is one that says nothing", async () => {
    await expect(streamParts(customModel(parts(text)).languageModel)).rejects.toMatchObject({
      code: "MODEL_STREAM_CUT",
    });
    await expect(streamParts(customModel(parts(finish)).languageModel)).rejects.toMatchObject({ code: "MODEL_EMPTY" });
    await expect(
      streamParts(
        customModel(parts(text, { type: "error", error: { message: "boom", type: "server_error" } })).languageModel,
      ),
    ).rejects.toMatchObject({ code: "MODEL_SERVER" });
  });

  it("that ignores the signal is left behind at once", async () => {
    const controller = new AbortController();
    const stop = new CodedError("TURN_STOPPED", "The user stopped the turn.");
    const deaf = customModel(modelOf(() => new Promise<never>(() => {})));
    const waiting = streamParts(deaf.languageModel, { abortSignal: controller.signal });
    controller.abort(stop);
    await expect(waiting).rejects.toMatchObject({ code: "MODEL_ABORTED", cause: stop });

    let wasCancelled = false;
    const mute = customModel(modelOf(() => new ReadableStream({ cancel: () => void (wasCancelled = true) })));
    const second = new AbortController();
    const { stream } = await mute.languageModel.doStream({ prompt, abortSignal: second.signal });
    const reading = stream.getReader().read();
    second.abort(stop);
    await expect(reading).rejects.toMatchObject({ code: "MODEL_ABORTED" });
    expect(wasCancelled).toBe(true);
  });

  it("whose stream comes after the stop has it cancelled", async () => {
    let deliver: (stream: ReadableStream<LanguageModelV3StreamPart>) => void = () => {};
    const late = modelOf(
      () => new Promise<ReadableStream<LanguageModelV3StreamPart>>((resolve) => (deliver = resolve)),
    );
    const controller = new AbortController();
    const calling = customModel(late).languageModel.doStream({ prompt, abortSignal: controller.signal });
    controller.abort();
    await expect(calling).rejects.toMatchObject({ code: "MODEL_ABORTED" });
    const cancelled = new Promise((resolve) => deliver(new ReadableStream({ cancel: resolve })));
    await cancelled;
  });

  it("keeps its author's error as the cause, and says that it was not foreseen", async () => {
    const defect = new RangeError("index 7 is out of range");
    const error: unknown = await streamParts(customModel(modelOf(() => Promise.reject(defect))).languageModel).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({
      code: "MODEL_FAILED",
      cause: defect,
      message: "mine/m-1 failed in an unexpected way (RangeError). This was not foreseen: please report it.",
    });
  });

  it("holds tool calls back until the stream has ended well", async () => {
    const call = { type: "tool-call", toolCallId: "c1", toolName: "shell", input: '{"command":"rm' } as const;
    const seen: string[] = [];
    const reading = (async () => {
      const { stream } = await customModel(parts(text, call)).languageModel.doStream({ prompt });
      for await (const part of stream) seen.push(part.type);
    })();
    await expect(reading).rejects.toMatchObject({ code: "MODEL_STREAM_CUT" });
    expect(seen).toEqual(["text-delta"]);
    expect((await streamParts(customModel(parts(call, text, finish)).languageModel)).map(({ type }) => type)).toEqual([
      "text-delta",
      "tool-call",
      "finish",
    ]);
  });

  it("lets a slow reader slow the model down: nothing is read ahead", async () => {
    let pulledCount = 0;
    const endless = modelOf(
      () =>
        new ReadableStream(
          { pull: (controller) => controller.enqueue({ ...text, delta: String(pulledCount++) }) },
          { highWaterMark: 0 },
        ),
    );
    const { stream } = await customModel(endless).languageModel.doStream({ prompt });
    const reader = stream.getReader();
    for (let count = 0; count < 5; count++) await reader.read();
    await new Promise((resolve) => setImmediate(resolve));
    expect(pulledCount).toBe(5);
    await reader.cancel();
  });

  it("that never lets go of its stream does not hold a reader that goes away", async () => {
    const clinging = modelOf(
      () =>
        new ReadableStream({ start: (controller) => controller.enqueue(text), cancel: () => new Promise(() => {}) }),
    );
    const { stream } = await customModel(clinging).languageModel.doStream({ prompt });
    for await (const part of stream) if (part.type === "text-delta") break;
  });

  it("of another specification is refused", () => {
    const old = { ...parts(), specificationVersion: "v2" } as unknown as LanguageModelV3;
    expect(() => customModel(old)).toThrow(
      expect.objectContaining({
        code: "MODEL_OPTION_INVALID",
        message: expect.stringContaining("specification v3, got v2") as string,
      }),
    );
  });

  it("may be wrapped twice without another account of its errors", async () => {
    const inner = customModel(parts(text), "inner/model");
    await expect(streamParts(customModel(inner.languageModel, "outer/model").languageModel)).rejects.toMatchObject({
      code: "MODEL_STREAM_CUT",
      context: { model: "inner/model" },
    });
  });

  it("answers doGenerate with the same endings", async () => {
    const whole = (content: { type: "text"; text: string }[]): LanguageModelV3 => ({
      ...parts(),
      doGenerate: async () => ({ content, finishReason: finish.finishReason, usage, warnings: [] }),
    });
    await expect(
      customModel(whole([{ type: "text", text: "Hi" }])).languageModel.doGenerate({ prompt }),
    ).resolves.toMatchObject({ content: [{ text: "Hi" }] });
    await expect(customModel(whole([])).languageModel.doGenerate({ prompt })).rejects.toMatchObject({
      code: "MODEL_EMPTY",
    });
    await expect(customModel(parts()).languageModel.doGenerate({ prompt })).rejects.toMatchObject({
      code: "MODEL_FAILED",
    });
  });
});

describe("describing an error that did not come through a resolved model", () => {
  const named = (name: string, fields: object = {}): Error =>
    Object.assign(new Error("words of its own"), { name, ...fields });

  it.each<[string, unknown, string, boolean]>([
    ["an AI SDK error", named("AI_APICallError", { statusCode: 529 }), "MODEL_OVERLOADED", true],
    [
      "a network error in the causes",
      new TypeError("fetch failed", { cause: named("ConnectTimeoutError", { code: "UND_ERR_CONNECT_TIMEOUT" }) }),
      "MODEL_UNREACHABLE",
      true,
    ],
    [
      "an expired certificate",
      new TypeError("fetch failed", { cause: named("Error", { code: "CERT_HAS_EXPIRED" }) }),
      "MODEL_UNREACHABLE",
      false,
    ],
    ["an abort", new DOMException("This operation was aborted", "AbortError"), "MODEL_ABORTED", false],
    ["a missing key", named("AI_LoadAPIKeyError"), "MODEL_KEY_MISSING", false],
    ["an unknown model", named("AI_NoSuchModelError"), "MODEL_NOT_FOUND", false],
    ["an unsupported prompt", named("AI_UnsupportedFunctionalityError"), "MODEL_BAD_REQUEST", false],
    ["an error part", { type: "overloaded_error", message: "Overloaded" }, "MODEL_OVERLOADED", true],
    ["a string", "it broke", "MODEL_SERVER", true],
    ["nothing", undefined, "MODEL_FAILED", false],
    ["a defect", new RangeError("words of its own"), "MODEL_FAILED", false],
  ])("%s is %s", (_what, error, code, retryable) => {
    const failure = describeModelError(error);
    expect(failure).toMatchObject({ code, retryable });
    expect(failure.message).toMatch(/^The model /);
    expect(failure.message).not.toContain("words of its own");
  });

  it("does not loop on a cause that is its own", () => {
    const error = named("Error");
    error.cause = error;
    expect(describeModelError(error).code).toBe("MODEL_FAILED");
  });

  it("survives errors whose fields are hostile", () => {
    for (const fields of [
      { statusCode: "500" },
      { responseBody: 7, data: null },
      { responseHeaders: [1] },
      { code: 5, name: null },
      { cause: "text" },
    ]) {
      expect(describeModelError(Object.assign(new Error("x"), fields)).message).toMatch(/^The model /);
    }
  });
});
