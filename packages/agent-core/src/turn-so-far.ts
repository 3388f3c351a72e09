import type { AssistantBody, Entry, ToolBody, ToolCallPart, Usage } from "@turnkeeper/state-store";
import { Guardrails } from "./guardrails.ts";
import { addUsage } from "./step-reader.ts";
import type { ToolSet } from "./tool-input.ts";

/** What a turn has used and done before this process runs it: nothing, unless another began it. */
export interface TurnSoFar {
  /** The number of the last step that is stored. */
  readonly stepCount: number;
  readonly usage: Usage;
  readonly said: readonly AssistantBody[];
  readonly callIds: ReadonlySet<string>;
  readonly guardrails: Guardrails;
  /** The calls that have no result yet: the turn was suspended over them. */
  readonly openCalls: readonly ToolCallPart[];
}

const stepKey = /\/(\d+)\/assistant$/;

/** Counts up what a turn's stored entries say of it, so that neither a restart nor a pause gives it anything back. */
export function turnSoFar(
  stored: readonly Entry[],
  tools: ToolSet,
  settings: { readonly hardStop: boolean },
): TurnSoFar {
  const guardrails = new Guardrails(settings);
  const callIds = new Set<string>();
  // What came late settles nothing: a call that has such a result alone still has none.
  const entries = stored.filter(({ late }) => !late);
  const results = new Map(entries.flatMap(({ body }) => (body.role === "tool" ? [[body.callId, body] as const] : [])));
  const openCalls: ToolCallPart[] = [];
  const said: AssistantBody[] = [];
  let usage: Usage = {};
  let stepCount = 0;
  for (const { key, body } of entries) {
    if (body.role !== "assistant") continue;
    stepCount = Math.max(stepCount, Number(stepKey.exec(key)?.[1] ?? 0));
    usage = addUsage(usage, body.usage ?? {});
    said.push(body);
    guardrails.stepBegins();
    for (const part of body.parts) {
      if (part.type !== "tool-call") continue;
      callIds.add(part.callId);
      const result: ToolBody | undefined = results.get(part.callId);
      if (result) guardrails.replay({ ...part, traits: tools.get(part.name)?.traits }, result);
      else openCalls.push(part);
    }
  }
  return { stepCount, usage, said, callIds, guardrails, openCalls };
}
