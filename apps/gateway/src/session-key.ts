import type { IncomingHttpHeaders } from "node:http";
import type { CallSettings } from "@turnkeeper/agent-core";
import { Refusal } from "./refusal.ts";

/** What the header is for, in the OpenAPI document. */
export const sessionKeyText = "The conversation whose prompt cache it shares; at most 200 characters.";

/** `X-Session-Key` of a request. Throws the refusal of one that is too long. */
export function sessionKeyOf(headers: IncomingHttpHeaders): string | undefined {
  const key = headers["x-session-key"];
  if (typeof key !== "string" || key === "") return undefined;
  if (key.length <= 200) return key;
  const message = "X-Session-Key has at most 200 characters.";
  throw new Refusal(400, "request_invalid", message, { fields: [{ field: "X-Session-Key", message }] });
}

/** The conversation that a key names, whose prompt cache a turn shares. */
export function conversationOfKey(key: string): NonNullable<CallSettings["conversation"]> {
  return { source: "gateway", key, generation: 0 };
}
