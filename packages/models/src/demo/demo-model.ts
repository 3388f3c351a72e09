/** `demo/…`: offline stand-ins for a model, which stream and call tools as a real one does. */
import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { Host } from "@turnkeeper/kernel";
import { choiceError } from "../errors.ts";
import { guardModel } from "../guarded-model.ts";
import type { ResolvedModel } from "../resolved-model.ts";
import { readConversation } from "./conversation.ts";
import { nextStep } from "./next-step.ts";
import { streamOf } from "./part-stream.ts";
import { signed } from "./signature.ts";
import { shortened } from "./step.ts";
import type { Step } from "./step.ts";

interface DemoKind {
  /** Between two words, in milliseconds; none without it. */
  readonly paceMs?: number;
  readonly decide: (options: LanguageModelV3CallOptions) => Step | "silence";
  readonly about: string;
}

const useTools = ({ prompt, tools = [] }: LanguageModelV3CallOptions): Step =>
  nextStep(readConversation(prompt), new Set(tools.map(({ name }) => name)));

const echo = ({ prompt }: LanguageModelV3CallOptions): Step => ({
  kind: "answer",
  text: `You said: ${shortened(readConversation(prompt).request)}`,
});

const demoKinds: Readonly<Record<string, DemoKind>> = {
  tools: { decide: useTools, about: "follows a few rules and drives the session's tools" },
  echo: { decide: echo, about: "repeats what it is told" },
  slow: {
    decide: useTools,
    paceMs: 250,
    about: "is demo/tools at four words a second, for trying a stop, a steer or a kill",
  },
  silent: { decide: () => "silence", about: "never answers, for trying the watchdog" },
};

/** Opens one of the demo models. Throws `MODEL_NOT_FOUND` for a name that is none. */
export function openDemoModel(modelId: string, host: Host): ResolvedModel {
  const kind = Object.hasOwn(demoKinds, modelId) ? demoKinds[modelId] : undefined;
  const id = `demo/${modelId}`;
  if (!kind) {
    const names = Object.keys(demoKinds).map((name) => `demo/${name}`);
    throw choiceError(
      "MODEL_NOT_FOUND",
      `Cannot use ${JSON.stringify(id.slice(0, 80))}: there is no such demo model; the choices are ${names.join(", ")}.`,
    );
  }
  let isClosed = false;
  const close = async (): Promise<void> => void (isClosed = true);
  const languageModel = guardModel(demoLanguageModel(modelId, kind, host), {
    subject: { id, secrets: [] },
    alwaysGivesReason: true,
    isClosed: () => isClosed,
  });
  const note = `${id} is the built-in demo model: it works offline, needs no key and ${kind.about}. For a real model choose openai/…, anthropic/… or openai-compatible/….`;
  return { id, languageModel, note, close, [Symbol.asyncDispose]: close };
}

/** Four characters stand for a token: enough to see that usage is counted. */
const roughTokens = (value: unknown): number => Math.ceil(JSON.stringify(value).length / 4);

/** The parts of one answer, in the order in which a provider's stream has them. */
function partsOf(
  step: Step,
  modelId: string,
  { prompt }: LanguageModelV3CallOptions,
  host: Host,
): LanguageModelV3StreamPart[] {
  const text = step.kind === "answer" ? signed(step.text, modelId) : step.says;
  const words = text.match(/\s*\S+\s*$|\s*\S+/g) ?? [];
  const calls = step.kind === "call" ? step.calls : [];
  const inputCount = roughTokens(prompt);
  const outputCount = roughTokens([text, calls]);
  return [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "0" },
    ...words.map((delta) => ({ type: "text-delta", id: "0", delta }) as const),
    { type: "text-end", id: "0" },
    ...calls.flatMap(({ tool, input }): LanguageModelV3StreamPart[] => {
      const id = `demo-${host.random.id()}`;
      const json = JSON.stringify(input);
      const middle = Math.ceil(json.length / 2);
      return [
        { type: "tool-input-start", id, toolName: tool },
        { type: "tool-input-delta", id, delta: json.slice(0, middle) },
        { type: "tool-input-delta", id, delta: json.slice(middle) },
        { type: "tool-input-end", id },
        { type: "tool-call", toolCallId: id, toolName: tool, input: json },
      ];
    }),
    {
      type: "finish",
      finishReason: { unified: calls.length > 0 ? "tool-calls" : "stop", raw: "demo" },
      usage: {
        inputTokens: { total: inputCount, noCache: inputCount, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: outputCount, text: outputCount, reasoning: 0 },
      },
    },
  ];
}

function demoLanguageModel(modelId: string, { decide, paceMs }: DemoKind, host: Host): LanguageModelV3 {
  const partsFor = (options: LanguageModelV3CallOptions): LanguageModelV3StreamPart[] | "silence" => {
    const step = decide(options);
    return step === "silence" ? step : partsOf(step, modelId, options, host);
  };
  return {
    specificationVersion: "v3",
    provider: "demo",
    modelId,
    supportedUrls: {},
    doStream: async (options) => ({
      stream: streamOf(partsFor(options), { timers: host.timers, paceMs, signal: options.abortSignal }),
    }),
    async doGenerate(options) {
      const parts = partsFor(options);
      // The guard around every model ends this wait when the call is stopped.
      if (parts === "silence") return new Promise<never>(() => {});
      const text = parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("");
      const calls = parts.filter((part) => part.type === "tool-call");
      const { finishReason, usage } = parts.find((part) => part.type === "finish")!;
      return { content: [{ type: "text", text }, ...calls], finishReason, usage, warnings: [] };
    },
  };
}
