import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { retryAfterMs } from "./retry-after.ts";
import { openTransport } from "./transport.ts";

/** An OAuth 2.0 token endpoint and who asks there. */
export interface TokenEndpoint {
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret?: string;
  readonly scope?: string;
}

export type TokenReply =
  | { readonly kind: "granted"; readonly fields: Readonly<Record<string, unknown>> }
  /** The endpoint will not do it, now or later. `isDisowned`: it is the refresh token that it does not take any more. */
  | { readonly kind: "refused"; readonly evidence: string; readonly isDisowned: boolean }
  /** Nothing is known: it did not answer, or not with an answer. */
  | { readonly kind: "unavailable"; readonly error: CodedError };

/** An endpoint answers within a second or two; whoever waits for the lock meanwhile waits longer than this. */
const silenceMs = 20_000;

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(text: string): Fields | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    // A proxy's page: it tells nothing, and may hold anything.
    return undefined;
  }
}

const plainWord = /^[a-z_]{1,40}$/;
const mayDoLater = (status: number): boolean => status === 408 || status === 429 || status >= 500;

function systemCodeOf(error: unknown): string {
  for (let next = error; next instanceof Error; next = next.cause)
    if ("code" in next && typeof next.code === "string") return next.code;
  return "no answer";
}

/** Asks once for new tokens (RFC 6749 §6). Never rejects; nothing of a token is in what it answers but `fields`. */
export async function requestTokens(
  { host, proxy }: { readonly host: Host; readonly proxy: URL | undefined },
  endpoint: TokenEndpoint,
  refreshToken: string,
): Promise<TokenReply> {
  const { tokenUrl, clientId, clientSecret, scope } = endpoint;
  const unavailable = (evidence: string, waitMs?: number): TokenReply => {
    const message = `${tokenUrl} could not be asked to refresh the token (${evidence}). The token itself was not refused: try again.`;
    const context = { retryable: true, ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }) };
    return { kind: "unavailable", error: new CodedError("MODEL_CREDENTIAL_UNAVAILABLE", message, { context }) };
  };
  const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: refreshToken, client_id: clientId });
  if (clientSecret !== undefined) body.set("client_secret", clientSecret);
  if (scope !== undefined) body.set("scope", scope);
  const transport = await openTransport(host.timers, { idleTimeoutMs: silenceMs, proxy });
  try {
    const headers = { accept: "application/json", "content-type": "application/x-www-form-urlencoded" };
    const reply = await transport.fetch(tokenUrl, { method: "POST", headers, body: body.toString() });
    const fields = fieldsOf(await reply.text());
    const { status } = reply;
    if (mayDoLater(status)) return unavailable(`HTTP ${status}`, retryAfterMs(Object.fromEntries(reply.headers)));
    if (reply.ok) return fields ? { kind: "granted", fields } : unavailable(`HTTP ${status} without JSON`);
    const word = typeof fields?.["error"] === "string" && plainWord.test(fields["error"]) ? fields["error"] : undefined;
    const evidence = `HTTP ${status}${word === undefined ? "" : `, ${word}`}`;
    return { kind: "refused", evidence, isDisowned: word === "invalid_grant" };
  } catch (error) {
    return unavailable(systemCodeOf(error));
  } finally {
    await transport.close();
  }
}
