import type { TurnHandle } from "@turnkeeper/agent-core";
import type { JsonValue, Transcript } from "@turnkeeper/state-store";
import type { LanguageModelMiddleware, ModelMessage } from "ai";

/** The conversation as `streamText` takes it. */
export function messagesOf({ entries }: Transcript): ModelMessage[] {
  return entries.flatMap(({ body }): ModelMessage[] => {
    switch (body.role) {
      case "user":
      case "summary":
        return [{ role: "user", content: body.text }];
      case "assistant": {
        const content = body.parts
          .filter((part) => part.type !== "provider-tool")
          .map((part) =>
            part.type === "tool-call"
              ? { type: part.type, toolCallId: part.callId, toolName: part.name, input: part.input }
              : { type: part.type, text: part.text },
          );
        return [{ role: "assistant", content }];
      }
      case "tool": {
        const { callId: toolCallId, name: toolName } = body;
        const output = { type: body.status === "ok" ? "json" : "error-json", value: body.output as never } as const;
        return [{ role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output }] }];
      }
      case "notice":
        return [];
    }
  });
}

/** Arguments that are no JSON are kept as they came: the SDK tells the model about them. */
function inputOf(text: string): JsonValue {
  try {
    return text === "" ? {} : (JSON.parse(text) as JsonValue);
  } catch {
    return { text };
  }
}

export interface DurableSteps {
  /** For `wrapLanguageModel`: each step is stored when it is complete, its calls before the first of their tools starts. */
  readonly middleware: LanguageModelMiddleware;
  /** Runs what a tool does, at most `boundMs` of silence, and stores its result before the model hears of it. */
  call<Output extends JsonValue>(
    tool: { readonly name: string; readonly callId: string; readonly boundMs: number },
    run: () => Promise<Output>,
  ): Promise<Output>;
  /** After a stop: what had come of the step that was cut, marked as partial. */
  keepPartial(): Promise<void>;
}

/** Makes the steps of a `streamText` loop durable steps of `turn`. One for each turn. */
export function durableSteps(turn: TurnHandle): DurableSteps {
  let stepCount = 0;
  let text = "";
  const openCalls = new Map<string, string>();

  const append = (key: string, body: Parameters<TurnHandle["append"]>[0][number]["body"]): Promise<void> =>
    turn.append([{ key: `${turn.turnId}/${key}`, body }]);

  const storeResult = async (callId: string, status: "ok" | "error", output: JsonValue): Promise<void> => {
    const name = openCalls.get(callId);
    if (name === undefined) return;
    await append(callId, { role: "tool", callId, name, status, output });
    openCalls.delete(callId);
  };

  const storeStep = async (
    calls: readonly { toolCallId: string; toolName: string; input: string }[],
  ): Promise<void> => {
    const parts = [
      ...(text === "" ? [] : [{ type: "text", text } as const]),
      ...calls.map(({ toolCallId: callId, toolName: name, input }) => {
        openCalls.set(callId, name);
        return { type: "tool-call", callId, name, input: inputOf(input) } as const;
      }),
    ];
    text = "";
    if (parts.length > 0) await append(`step ${stepCount}`, { role: "assistant", parts });
  };

  return {
    middleware: {
      specificationVersion: "v3",
      wrapStream: async ({ doStream, params }) => {
        // A call whose arguments did not fit was answered by the SDK itself: its result comes back with the next prompt.
        for (const part of params.prompt.flatMap((message) => (message.role === "tool" ? message.content : [])))
          if (part.type === "tool-result" && "value" in part.output)
            await storeResult(part.toolCallId, "error", part.output.value as JsonValue);
        await turn.beforeSideEffect();
        const { stream, ...rest } = await doStream();
        stepCount++;
        type Part = typeof stream extends ReadableStream<infer One> ? One : never;
        const held: Part[] = [];
        const calls: Extract<Part, { type: "tool-call" }>[] = [];
        const step = new TransformStream<Part, Part>({
          transform: (part, controller) => {
            if (part.type === "text-delta") text += part.delta;
            if ("delta" in part && part.delta !== "") turn.progress(part.type);
            if (part.type === "tool-call" && !part.providerExecuted) calls.push(part);
            // `streamText` starts a tool as soon as it sees the call: held back until the step is stored.
            if (calls.length > 0 || part.type === "finish") held.push(part);
            else controller.enqueue(part);
          },
          flush: async (controller) => {
            await storeStep(calls);
            for (const part of held) controller.enqueue(part);
          },
        });
        return { ...rest, stream: stream.pipeThrough(step) };
      },
    },
    call: async ({ name, callId, boundMs }, run) => {
      await turn.beforeSideEffect();
      using _wait = turn.declareWait(name, boundMs);
      const output = await run().catch(async (error: unknown) => {
        await storeResult(callId, "error", error instanceof Error ? error.message : String(error));
        throw error;
      });
      await storeResult(callId, "ok", output);
      turn.progress("tool", name);
      return output;
    },
    keepPartial: async () => {
      if (text !== "")
        await append(`step ${stepCount}`, { role: "assistant", parts: [{ type: "text", text }], partial: true });
    },
  };
}
