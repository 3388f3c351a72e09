/** What the tests of compaction share: a model that is talked to at length, and summarises when it is asked to. */
import type { LanguageModelV3CallOptions, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { CodedError } from "@turnkeeper/kernel";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import type { Entry, StateStore } from "@turnkeeper/state-store";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedModel, ScriptedStep } from "../src/testing/index.ts";

/** Whether a request asks for a summary. */
export function asksForSummary(request: LanguageModelV3CallOptions): boolean {
  const [first] = request.prompt;
  return first?.role === "system" && first.content.startsWith("You write the summary");
}

/** The words of a request, without those of the system. */
export function wordsOf(request: LanguageModelV3CallOptions): string {
  return request.prompt
    .flatMap((message): readonly { readonly type: string }[] =>
      typeof message.content === "string" ? [] : message.content,
    )
    .map((part) => ("text" in part ? String(part.text) : JSON.stringify(part)))
    .join("\n");
}

/** About so many tokens of text. */
export const words = (tokens: number): string => "word".repeat(tokens);

export interface TalkativeModel extends ScriptedModel {
  /** Requests for summaries, and the others. */
  readonly summaries: readonly LanguageModelV3CallOptions[];
  readonly turns: readonly LanguageModelV3CallOptions[];
}

type Answer = ScriptedStep | ((request: LanguageModelV3CallOptions) => ScriptedStep | Promise<ScriptedStep>);

/** The tokens of a request, as a provider would count them. */
export function tokensOf(request: LanguageModelV3CallOptions): number {
  return Math.ceil(JSON.stringify(request.prompt).length / 4);
}

const finish = (
  request: LanguageModelV3CallOptions,
  text: string,
  reason: "stop" | "length",
): LanguageModelV3StreamPart => ({
  type: "finish",
  usage: {
    inputTokens: { total: tokensOf(request), noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: Math.ceil(text.length / 4), text: undefined, reasoning: undefined },
  },
  finishReason: { unified: reason, raw: reason },
});

/** An answer whose usage counts what was asked. */
export const counted =
  (text: string, reason: "stop" | "length" = "stop") =>
  (request: LanguageModelV3CallOptions): ScriptedStep => ({
    parts: [
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: text },
      { type: "text-end", id: "t" },
      finish(request, text, reason),
    ],
  });

/** Calls of a tool, with a usage that counts what was asked. */
export const countedCalls =
  (...calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[]) =>
  (request: LanguageModelV3CallOptions): ScriptedStep => ({
    parts: [
      ...calls.map(({ id, name, input }): LanguageModelV3StreamPart => ({
        type: "tool-call",
        toolCallId: id,
        toolName: name,
        input: JSON.stringify(input),
      })),
      finish(request, "", "stop"),
    ],
  });

/** The provider refuses a request as too long, above so many tokens. */
export const overflow = (): ScriptedStep => ({
  fail: new CodedError("MODEL_CONTEXT_OVERFLOW", "The prompt is too long.", { context: { retryable: false } }),
});

/** A model with a window; `answers` are those of its turns, in order, and `summary` that of every summary. */
export function talkativeModel(
  answers: readonly Answer[],
  summary: Answer | readonly Answer[],
  contextWindowTokens?: number,
): TalkativeModel {
  const summaries: LanguageModelV3CallOptions[] = [];
  const turns: LanguageModelV3CallOptions[] = [];
  const next = (request: LanguageModelV3CallOptions): ScriptedStep | Promise<ScriptedStep> => {
    if (asksForSummary(request)) {
      const answer = Array.isArray(summary)
        ? (summary as readonly Answer[])[Math.min(summaries.length, summary.length - 1)]
        : (summary as Answer);
      summaries.push(request);
      if (answer === undefined) throw new Error("No summary is scripted.");
      return typeof answer === "function" ? answer(request) : answer;
    }
    const answer = answers[turns.length];
    turns.push(request);
    if (answer === undefined) throw new Error(`Answer ${turns.length} was asked for.`);
    return typeof answer === "function" ? answer(request) : answer;
  };
  const model = scriptedModel(Array.from({ length: 400 }, () => next));
  return { ...model, summaries, turns, ...(contextWindowTokens === undefined ? {} : { contextWindowTokens }) };
}

/** Everything a session has, and what of it is context. */
export async function transcriptOf(
  store: StateStore,
  sessionId: string,
): Promise<{ readonly all: readonly Entry[]; readonly context: readonly Entry[]; readonly compactionCount: number }> {
  const all = await store.transcript.load(sessionId, { all: true });
  const context = await store.transcript.load(sessionId);
  return { all: all.entries, context: context.entries, compactionCount: context.compactionCount };
}

/** The model with summaries that come piece by piece, one every so often. */
export function trickling(
  model: TalkativeModel,
  host: VirtualHost,
  everyMs: number,
  pieceCount: number,
): TalkativeModel {
  const stream = (request: LanguageModelV3CallOptions): ReadableStream<LanguageModelV3StreamPart> => {
    let sent = 0;
    let cancel = (): void => {};
    request.abortSignal?.addEventListener("abort", () => cancel(), { once: true });
    const pull = async (controller: ReadableStreamDefaultController<LanguageModelV3StreamPart>): Promise<void> => {
      if (sent === pieceCount) {
        controller.enqueue(finish(request, "piece", "stop"));
        return controller.close();
      }
      await new Promise<void>((resolve) => {
        cancel = host.timers.after(everyMs, resolve);
      });
      if (sent++ === 0) controller.enqueue({ type: "text-start", id: "t" });
      controller.enqueue({ type: "text-delta", id: "t", delta: `piece ${sent} ` });
    };
    return new ReadableStream({ pull }, { highWaterMark: 0 });
  };
  const { languageModel } = model;
  const doStream: typeof languageModel.doStream = async (request) =>
    asksForSummary(request) ? { stream: stream(request) } : languageModel.doStream(request);
  return { ...model, languageModel: { ...languageModel, doStream } };
}
