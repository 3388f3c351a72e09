import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { checkedSessionId } from "@turnkeeper/agent-core";
import { sessionKeyOf, sessionKeyText } from "../session-key.ts";
import { traceParentOf } from "../trace-parent.ts";
import { unfit } from "./said.ts";

type Policy = "wait" | "reject" | "interrupt";

/** What a request says beside its body. */
export interface RequestHeaders {
  /** `X-Session-Id`: the durable session that it goes on with. */
  readonly sessionId: string | undefined;
  /** `X-Session-Key`: the conversation whose prompt cache it shares. */
  readonly sessionKey: string | undefined;
  /** `traceparent`: the span that the turn's own is in. */
  readonly traceParent: string | undefined;
  /** `Idempotency-Key` or `X-Input-Id`. */
  readonly inputId: string | undefined;
  /** `X-On-Busy`. */
  readonly onBusy: Policy;
}

/** Each header that a request may have, for the OpenAPI document. */
export const headerTexts: Readonly<Record<string, string>> = {
  "X-Session-Id": "The durable session that the request goes on with. Default: one of its own.",
  "X-Session-Key": sessionKeyText,
  "Idempotency-Key": "The input's id: the same id with the same request runs once, however often it is sent.",
  "X-Input-Id": "The same; where both are given, Idempotency-Key is the one.",
  "X-On-Busy": "What to do while another turn runs on the session: wait (default), reject or interrupt.",
};

const policies: ReadonlySet<string> = new Set<Policy>(["wait", "reject", "interrupt"]);

function valueOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function readHeaders(headers: IncomingHttpHeaders): RequestHeaders {
  const onBusy = valueOf(headers, "x-on-busy") ?? "wait";
  if (!policies.has(onBusy)) throw unfit("X-On-Busy", "X-On-Busy is wait, reject or interrupt.");
  const sessionId = valueOf(headers, "x-session-id");
  const sessionKey = sessionKeyOf(headers);
  return {
    sessionId: sessionId === undefined ? undefined : checkedSessionId(sessionId),
    sessionKey,
    traceParent: traceParentOf(headers),
    inputId: valueOf(headers, "idempotency-key") ?? valueOf(headers, "x-input-id"),
    onBusy: onBusy as Policy,
  };
}

const shortDigest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);

/** The session of a request that names none: one retry finds what the other made, by its idempotency key. */
export const sessionIdOfKey = (inputId: string): string => `chat-${shortDigest(inputId)}`;

/** The input of what a request says beside the results of a turn's calls: one for the request, however often it is sent. */
export const inputIdBeside = (turnId: string, callIds: readonly string[], texts: readonly string[]): string =>
  `beside-${shortDigest(JSON.stringify([turnId, callIds, texts]))}`;
