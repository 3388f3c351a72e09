/** A server's answer as text for a model, in bounds: it was written by a stranger. */

import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { CapturedOutput } from "../captured-output.ts";

type Part = CallToolResult["content"][number];

export function answerText(result: CallToolResult, bytesMax: number): string {
  const kept = new CapturedOutput(bytesMax);
  const parts = result.content.map(partText);
  if (parts.length === 0 && result.structuredContent !== undefined)
    parts.push(JSON.stringify(result.structuredContent));
  for (const [index, part] of parts.entries()) kept.push(Buffer.from(index === 0 ? part : `\n${part}`, "utf8"));
  const text = kept.text();
  return text === "" ? "(no output)" : text;
}

function partText(part: Part): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "image":
    case "audio":
      return `[${part.type}, ${part.mimeType}, not shown]`;
    case "resource_link":
      return `[${part.name}: ${part.uri}]`;
    case "resource":
      return "text" in part.resource ? part.resource.text : `[${part.resource.uri}, not shown]`;
  }
}
