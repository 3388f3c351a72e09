import { checkedSessionId } from "@turnkeeper/agent-core";
import { z } from "zod";
import { Refusal } from "./refusal.ts";

export interface SessionPath {
  readonly sessionId: string;
}

/** The id's own rule is the agent's, and so is the error that names it; the pattern here is for the document. */
export const sessionPath: z.ZodType<SessionPath> = z.strictObject({
  sessionId: z
    .string()
    .transform(checkedSessionId)
    .meta({ type: "string", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" }),
});

export const unknownSession = (): Refusal => new Refusal(404, "session_unknown", "There is no such session.");
