/**
 * HTTP for one model, on undici: every wait is bounded, an abort closes the socket, nothing is sent twice.
 *
 * Bounded are the connection, the wait for headers and each silence inside the body, from the headers on. A server that
 * sends keep-alive comments is not silent by this measure: only the turn's watchdog, which counts content, sees that.
 */
import type { Timers } from "@turnkeeper/kernel";
import type { CredentialSource } from "./credential.ts";
import { drain } from "./drain.ts";
import { endedAtDone } from "./done-event.ts";

export interface Transport {
  readonly fetch: typeof globalThis.fetch;
  /** Breaks running calls off and closes every socket. Safe to repeat. */
  close(): Promise<void>;
}

/** Ten seconds: longer than a slow TLS handshake across the world, short enough to be told of a wrong address. */
const connectTimeoutMs = 10_000;
/** What is read of an error's body; real ones are under 2 KiB. */
const longestErrorBytes = 64 * 1024;
const longestTimeoutMs = 2 ** 31 - 1;

export const eventStream = "text/event-stream";

/** A reply with a good status that is not what was asked for: a portal's page, a JSON document. */
class UnreadableReply extends Error {
  override readonly name = "UnreadableReply";
  readonly statusCode: number;
  readonly contentType: string;
  readonly responseBody: string;

  constructor(statusCode: number, contentType: string, responseBody: string) {
    super("The reply is no event stream.");
    this.statusCode = statusCode;
    this.contentType = contentType;
    this.responseBody = responseBody;
  }
}

async function readBounded(body: ReadableStream<Uint8Array> | null, byteCount: number): Promise<string> {
  if (!body) return "";
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let rest = byteCount;
  while (rest > 0) {
    const { done, value } = await reader.read();
    if (done) break;
    chunks.push(value.subarray(0, rest));
    rest -= value.byteLength;
  }
  // The rest of an endless body is not wanted; cancelling closes its connection.
  await reader.cancel();
  return Buffer.concat(chunks).toString("utf8");
}

// A server that streams under another name, or under none, is let through; these two families are never a stream.
const neverAStream = /^(?:text\/html|(?:application|text)\/(?:[\w.-]+\+)?(?:json|xml))$/;

function mediaTypeOf(headers: Headers): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
}

function withToken(init: RequestInit, token: string): RequestInit {
  const headers = new Headers(init.headers);
  headers.delete("x-api-key");
  headers.set("authorization", `Bearer ${token}`);
  return { ...init, headers };
}

/** The proxy would not let the request through: the server was never asked. */
class ProxyRefusal extends Error {
  override readonly name = "ProxyRefusal";
  readonly code: string;

  constructor(status: string) {
    super("The proxy refused the tunnel.");
    // Whether it may be different later is told by the code: the proxy's own troubles pass, a refusal stays.
    this.code = `ERR_PROXY_${status}`;
  }
}

/** undici calls it an abort, which it is not: nobody stopped anything. */
function asRefusal(error: unknown): unknown {
  for (let next = error; next instanceof Error; next = next.cause) {
    const [, status] = /^Proxy response \((\d{3})\)/.exec(next.message) ?? [];
    if (status !== undefined) return new ProxyRefusal(status);
  }
  return error;
}

export interface TransportSettings {
  readonly idleTimeoutMs: number;
  /** Requests go through a tunnel of this proxy, plain ones too. */
  readonly proxy?: URL | undefined;
  /** Every request carries its token, in place of any other key. */
  readonly credential?: CredentialSource | undefined;
}

export async function openTransport(
  timers: Timers,
  { idleTimeoutMs, proxy, credential }: TransportSettings,
): Promise<Transport> {
  const undici = await import("undici");
  const timeoutMs = Math.min(Math.ceil(idleTimeoutMs), longestTimeoutMs);
  const timeouts = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
  const agent = proxy
    ? new undici.ProxyAgent({
        ...timeouts,
        uri: proxy.href,
        // A proxy that takes the connection and never answers is as unreachable as one that does not.
        clientFactory: (origin, options) => new undici.Pool(origin, { ...options, headersTimeout: connectTimeoutMs }),
      })
    : new undici.Agent({ ...timeouts, connect: { timeout: connectTimeoutMs } });
  // undici's types and the ones of Node's own fetch describe the same standard in two type packages.
  const send = undici.fetch as unknown as (
    url: string,
    init: Omit<RequestInit, "dispatcher"> & { dispatcher: object },
  ) => Promise<Response>;

  const sendOnce = async (url: string, init: RequestInit): Promise<Response> => {
    try {
      // Redirects are not followed: fetch would carry x-api-key along to another host.
      return await send(url, { ...init, redirect: "manual", dispatcher: agent });
    } catch (error) {
      throw asRefusal(error);
    }
  };

  /** With a token that a 401 refused, the same request goes out once more with its replacement: nobody has served it. */
  const sendWithToken = async (url: string, init: RequestInit, source: CredentialSource): Promise<Response> => {
    const token = await source.token();
    const reply = await sendOnce(url, withToken(init, token));
    if (reply.status !== 401) return reply;
    const fresh = await source.replacement(token);
    if (fresh === undefined) return reply;
    await readBounded(reply.body, longestErrorBytes);
    init.signal?.throwIfAborted();
    return sendOnce(url, withToken(init, fresh));
  };

  const fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = input instanceof Request ? input.url : input.toString();
    const reply = await (credential ? sendWithToken(url, init, credential) : sendOnce(url, init));
    const { status, statusText, headers } = reply;
    if (!reply.ok) {
      const text = await readBounded(reply.body, longestErrorBytes);
      return new Response(text === "" ? null : text, { status, statusText, headers });
    }
    if (new Headers(init.headers).get("accept") !== eventStream) return reply;
    const mediaType = mediaTypeOf(headers);
    if (neverAStream.test(mediaType))
      throw new UnreadableReply(status, mediaType, await readBounded(reply.body, longestErrorBytes));
    if (!reply.body) return reply;
    const body = endedAtDone(reply.body, (rest) => drain(rest, timers));
    return new Response(body, { status, statusText, headers });
  };
  return { fetch, close: () => agent.destroy() };
}
