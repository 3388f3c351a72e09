import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3StreamPart,
  LanguageModelV3StreamResult,
} from "@ai-sdk/provider";
import type { ResolvedModel } from "@turnkeeper/models";
import { strictestProvider } from "./strictest-provider.ts";

/** One answer of the scripted model: text, calls, a failure, or a hand-made stream. */
export type ScriptedStep =
  | { readonly text: string }
  | {
      readonly calls: readonly { readonly id?: string; readonly name: string; readonly input: unknown }[];
      readonly text?: string;
    }
  | { readonly fail: unknown }
  | {
      readonly parts: readonly LanguageModelV3StreamPart[];
      /** What the stream fails with at its end. */
      readonly error?: unknown;
      /** Waited for before each part but the first. */
      readonly between?: () => Promise<void>;
      /** The stream has no end: nothing more comes until the request is aborted. */
      readonly isEndless?: boolean;
    }
  /** Says `text` and then nothing more, until the request is aborted. */
  | { readonly silentAfter: string }
  | ((request: LanguageModelV3CallOptions) => ScriptedStep | Promise<ScriptedStep>);

type HandMade = Extract<ScriptedStep, { parts: readonly LanguageModelV3StreamPart[] }>;

/** A model that answers from a script, and what it was asked. */
export interface ScriptedModel extends ResolvedModel {
  readonly requests: readonly LanguageModelV3CallOptions[];
}

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

function finish(reason: "stop" | "tool-calls"): LanguageModelV3StreamPart {
  return { type: "finish", usage, finishReason: { unified: reason, raw: reason } };
}

function textParts(text: string): LanguageModelV3StreamPart[] {
  const deltas = text.match(/.{1,7}/gsu) ?? [];
  return [
    { type: "text-start", id: "t" },
    ...deltas.map((delta): LanguageModelV3StreamPart => ({ type: "text-delta", id: "t", delta })),
    { type: "text-end", id: "t" },
  ];
}

function streamOf(
  parts: readonly LanguageModelV3StreamPart[],
  end: (controller: ReadableStreamDefaultController<LanguageModelV3StreamPart>) => void,
): LanguageModelV3StreamResult {
  return {
    stream: new ReadableStream<LanguageModelV3StreamPart>({
      start(controller) {
        for (const part of parts) controller.enqueue(part);
        end(controller);
      },
    }),
  };
}

/** Ends, or fails with `error`, once every part was read: an error that came earlier would take waiting parts with it. */
function handMade({ parts, error, between, isEndless }: HandMade): LanguageModelV3StreamResult {
  let index = 0;
  const pull = async (controller: ReadableStreamDefaultController<LanguageModelV3StreamPart>): Promise<void> => {
    if (index > 0) await between?.();
    const part = parts[index++];
    if (part !== undefined) controller.enqueue(part);
    else if (isEndless) await new Promise(() => {});
    else if (error === undefined) controller.close();
    else controller.error(error);
  };
  return { stream: new ReadableStream<LanguageModelV3StreamPart>({ pull }, { highWaterMark: 0 }) };
}

async function answer(
  step: ScriptedStep,
  request: LanguageModelV3CallOptions,
  callNumber: () => number,
): Promise<LanguageModelV3StreamResult> {
  if (typeof step === "function") return answer(await step(request), request, callNumber);
  if ("fail" in step) throw step.fail;
  if ("silentAfter" in step) {
    return streamOf(step.silentAfter === "" ? [] : textParts(step.silentAfter), (controller) => {
      request.abortSignal?.addEventListener("abort", () => controller.error(request.abortSignal?.reason), {
        once: true,
      });
    });
  }
  if ("parts" in step) return handMade(step);
  const calls = "calls" in step ? step.calls : [];
  const parts: LanguageModelV3StreamPart[] = [
    ...textParts(step.text ?? ""),
    ...calls.map((call): LanguageModelV3StreamPart => ({
      type: "tool-call",
      toolCallId: call.id ?? `call-${callNumber()}`,
      toolName: call.name,
      input: typeof call.input === "string" ? call.input : JSON.stringify(call.input),
    })),
    finish(calls.length > 0 ? "tool-calls" : "stop"),
  ];
  return streamOf(parts, (controller) => controller.close());
}

/**
 * A language model that plays the steps of a script, one for each request, and keeps the requests. A request past the
 * end of the script fails, and so does one that a strict provider would refuse. For tests of agents, loops and tools: no network, no time of its own.
 */
export function scriptedModel(steps: readonly ScriptedStep[], id = "scripted/model"): ScriptedModel {
  const requests: LanguageModelV3CallOptions[] = [];
  let calls = 0;
  const languageModel: LanguageModelV3 = {
    specificationVersion: "v3",
    provider: id.split("/")[0] ?? "scripted",
    modelId: id.split("/").slice(1).join("/"),
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("A scripted model streams only.")),
    doStream: async (request) => {
      const step = steps[requests.length];
      const { abortSignal: _signal, ...plain } = request;
      requests.push(structuredClone(plain));
      const complaints = strictestProvider(plain.prompt);
      if (complaints.length > 0) throw new Error(`A strict provider refuses this request: ${complaints.join("; ")}.`);
      if (step === undefined) throw new Error(`The script has ${steps.length} steps; request ${requests.length} came.`);
      return answer(step, request, () => ++calls);
    },
  };
  const close = async (): Promise<void> => {};
  return { id, languageModel, requests, close, [Symbol.asyncDispose]: close };
}
