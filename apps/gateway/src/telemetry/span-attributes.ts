/** What spans say, in the words of OpenTelemetry's conventions for generative AI; never what anybody said. */
import type { Attributes } from "@opentelemetry/api";
import type { ModelCallReport, TurnEvent, TurnFinished } from "@turnkeeper/agent-core";
import type { Usage } from "@turnkeeper/state-store";

type Told<Type extends TurnEvent["type"]> = Extract<TurnEvent, { readonly type: Type }>;

/** `openai/gpt-5-mini` → `openai`, `gpt-5-mini`. */
function modelAttributes(id: string): Attributes {
  const slash = id.indexOf("/");
  return { "gen_ai.provider.name": id.slice(0, slash), "gen_ai.request.model": id.slice(slash + 1) };
}

function usageAttributes(usage: Usage = {}): Attributes {
  const counts: Readonly<Record<string, number | undefined>> = {
    "gen_ai.usage.input_tokens": usage.inputTokens,
    "gen_ai.usage.output_tokens": usage.outputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
    "gen_ai.usage.cache_creation.input_tokens": usage.cacheWriteTokens,
    "turnkeeper.cost": usage.cost,
  };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined));
}

export function turnAttributes(started: Told<"turn.started">, agentName: string): Attributes {
  const { sessionId, turnId = "", fencingToken, resumes } = started;
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": agentName,
    "gen_ai.conversation.id": sessionId,
    "turnkeeper.session_id": sessionId,
    "turnkeeper.turn_id": turnId,
    "turnkeeper.fencing_token": fencingToken,
    ...(resumes ? { "turnkeeper.resumes": true } : {}),
  };
}

export function endAttributes({ outcome, reason, usage }: TurnFinished): Attributes {
  return {
    "turnkeeper.outcome": outcome,
    ...(reason === undefined ? {} : { "turnkeeper.reason": reason }),
    ...(outcome === "failed" ? { "error.type": reason ?? "failed" } : {}),
    ...usageAttributes(usage),
  };
}

export function modelCallAttributes(call: ModelCallReport): Attributes {
  const { sessionId, model, finishReason, failure, usage, firstOutputMs } = call;
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.conversation.id": sessionId,
    ...modelAttributes(model),
    ...(finishReason === undefined ? {} : { "gen_ai.response.finish_reasons": [finishReason] }),
    ...(firstOutputMs === undefined ? {} : { "gen_ai.response.time_to_first_chunk": firstOutputMs / 1000 }),
    ...(failure === undefined ? {} : { "error.type": failure }),
    ...usageAttributes(usage),
  };
}

export function toolAttributes({ sessionId, name, callId }: Told<"tool.started">): Attributes {
  return {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.conversation.id": sessionId,
    "gen_ai.tool.name": name,
    "gen_ai.tool.call.id": callId,
    "gen_ai.tool.type": "function",
  };
}
