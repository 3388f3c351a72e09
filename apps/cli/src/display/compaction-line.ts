import type { TurnEvent } from "@turnkeeper/agent-core";
import { counted } from "./count-text.ts";
import { printable } from "./style.ts";
import { secondsText } from "@turnkeeper/gateway/json";

export type CompactionEvent = Extract<TurnEvent, { type: `compaction.${string}` }>;

/** What a person is told of a compaction: what it does, what it did, or that it waits and why. */
export function compactionLine(event: CompactionEvent): string {
  switch (event.type) {
    case "compaction.started": {
      const window = event.windowTokens === undefined ? "" : ` of ${event.windowTokens}`;
      const why = event.cause === "manual" ? "" : "The conversation is long. ";
      return `${why}Summarising ${counted(event.entryCount, "message")} (about ${event.usedTokens}${window} tokens in all).`;
    }
    case "compaction.finished": {
      const how = event.method === "fallback" ? ", without a model" : "";
      return `Summarised in ${secondsText(event.durationMs)}${how}: about ${event.tokensBefore} tokens are ${event.tokensAfter} now. Everything stays readable and searchable.`;
    }
    case "compaction.deferred":
      return `Not summarised now: ${printable(event.detail)}`;
  }
}
