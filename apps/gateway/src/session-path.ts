import { checkedSessionId } from "@turnkeeper/agent-core";
import { z } from "zod";
import { Refusal } from "./refusal.ts";

export interface SessionPath {
  readonly sessionId: string;
}

/** A call of the session's turn. */
export interface CallPath extends SessionPath {
  readonly callId: string;
}

/** The id's own rule is the agent's, and so is the error that names it; the pattern here is for the document. */
const sessionId = z
  .string()
  .transform(checkedSessionId)
  .meta({ type: "string", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" });

export const sessionPath: z.ZodType<SessionPath> = z.strictObject({ sessionId });

export const callPath: z.ZodType<CallPath> = z.strictObject({
  sessionId,
  callId: z.string().min(1).max(1000).describe("The call, as `approval.requested` names it."),
});

export const unknownSession = (): Refusal => new Refusal(404, "session_unknown", "There is no such session.");
