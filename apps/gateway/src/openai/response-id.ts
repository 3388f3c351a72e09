import { checkedSessionId } from "@turnkeeper/agent-core";
import { unfit } from "./said.ts";

/** What a response's id says: whose answer it is, in terms that every gateway of the store knows. */
export interface ResponsePlace {
  readonly sessionId: string;
  readonly inputId: string;
  /** The first of the results that it goes on from; absent where it begins with a message. */
  readonly resultOf?: string | undefined;
}

const prefix = "resp_";

export function responseIdOf({ sessionId, inputId, resultOf }: ResponsePlace): string {
  const parts = resultOf === undefined ? [sessionId, inputId] : [sessionId, inputId, resultOf];
  return prefix + Buffer.from(JSON.stringify(parts)).toString("base64url");
}

export const unknownResponse = (why: string): Error =>
  unfit("previous_response_id", why, "previous_response_not_found");

/** Throws the refusal of an id that no gateway gave. */
export function responsePlace(id: string): ResponsePlace {
  const refused = unknownResponse("There is no response of that id; it may not have been stored.");
  if (!id.startsWith(prefix)) throw refused;
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(id.slice(prefix.length), "base64url").toString());
  } catch {
    throw refused;
  }
  if (!Array.isArray(parts) || !parts.every((part) => typeof part === "string")) throw refused;
  const [sessionId, inputId] = parts as readonly string[];
  if (sessionId === undefined || inputId === undefined) throw refused;
  return { sessionId: checkedSessionId(sessionId), inputId };
}
