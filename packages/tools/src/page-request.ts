/** Gets one page over HTTP within bounds of time, size and redirects, and from admitted addresses only. */

import { PassThrough } from "node:stream";
import type { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createUnzip } from "node:zlib";
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { refused } from "./address-gate.ts";
import type { AddressGate } from "./address-gate.ts";
import { toolError } from "./errors.ts";
import { quoted, systemCodeOf } from "./file-error.ts";

export interface PageLimits {
  /** From the first connection to the last byte, redirects included. */
  readonly timeoutMs: number;
  /** Of the body, after it was unpacked; the rest is not read. */
  readonly bodyBytesMax: number;
  readonly redirectsMax: number;
}

export type PageReply =
  | {
      readonly kind: "page";
      readonly url: URL;
      readonly status: number;
      /** As the server says it, lower case; empty where it does not. */
      readonly contentType: string;
      readonly body: Buffer;
      readonly cut: boolean;
    }
  /** To another host: whoever allowed the first one did not allow this one. */
  | { readonly kind: "elsewhere"; readonly url: URL; readonly target: URL };

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const connectTimeoutMs = 10_000;

export async function requestPage(
  { host, gate }: { readonly host: Host; readonly gate: AddressGate },
  start: URL,
  limits: PageLimits,
  signal: AbortSignal,
): Promise<PageReply> {
  const stop = new AbortController();
  const interrupt = (): void =>
    stop.abort(toolError("CALL_INTERRUPTED", "The turn was stopped while a page was fetched."));
  const cancel = host.timers.after(limits.timeoutMs, () =>
    stop.abort(
      toolError("FETCH_FAILED", `${quoted(start.href)} did not answer in full within ${limits.timeoutMs / 1_000} s.`),
    ),
  );
  signal.addEventListener("abort", interrupt);
  if (signal.aborted) interrupt();
  try {
    let url = start;
    for (let redirectCount = 0; ; redirectCount++) {
      gate.checkUrl(url);
      const reply = await requestOnce(gate, url, limits, stop.signal);
      if (reply.kind === "page") return reply;
      if (!staysOnHost(url, reply.target)) return reply;
      if (redirectCount === limits.redirectsMax) {
        throw toolError("FETCH_FAILED", `${quoted(start.href)} redirects more than ${limits.redirectsMax} times.`);
      }
      url = reply.target;
    }
  } catch (error) {
    throw stop.signal.aborted ? (stop.signal.reason as Error) : error;
  } finally {
    cancel();
    signal.removeEventListener("abort", interrupt);
  }
}

/** The same name and port, or from plain to encrypted with the usual ports; never back. */
function staysOnHost(from: URL, to: URL): boolean {
  return from.host === to.host && (from.protocol === to.protocol || to.protocol === "https:");
}

async function requestOnce(gate: AddressGate, url: URL, limits: PageLimits, signal: AbortSignal): Promise<PageReply> {
  const { Agent, buildConnector, request } = await import("undici");
  const connect = buildConnector({ lookup: gate.lookupFor(url), timeout: connectTimeoutMs });
  const agent = new Agent({
    connections: 1,
    pipelining: 0,
    headersTimeout: limits.timeoutMs,
    bodyTimeout: limits.timeoutMs,
    connect: (options, callback) =>
      connect(options, (...[error, socket]) => {
        if (error !== null) return callback(error, null);
        if (gate.admits(url, socket.remoteAddress)) return callback(null, socket);
        socket.destroy();
        return callback(refused(url, "the connection ended at another address than it should"), null);
      }),
  });
  try {
    const reply = await request(url, {
      dispatcher: agent,
      signal,
      headers: {
        accept: "text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.8, */*;q=0.1",
        "accept-encoding": "gzip, deflate, br",
        "user-agent": "turnkeeper",
      },
    });
    // A body that is left unread says so when its agent is destroyed, and without a listener ends the process.
    reply.body.on("error", () => undefined);
    const { statusCode: status, headers } = reply;
    const location = single(headers["location"]);
    if (redirectStatuses.has(status) && location !== undefined) {
      return { kind: "elsewhere", url, target: targetOf(url, location) };
    }
    const contentType = (single(headers["content-type"]) ?? "").toLowerCase();
    checkText(url, contentType);
    const { body, cut } = await readBody(reply.body, single(headers["content-encoding"]), limits.bodyBytesMax, url);
    return { kind: "page", url, status, contentType, body, cut };
  } catch (error) {
    throw fetchError(url, error);
  } finally {
    await agent.destroy();
  }
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === "object" ? value[0] : value;
}

function targetOf(url: URL, location: string): URL {
  try {
    return new URL(location, url);
  } catch {
    throw toolError("FETCH_FAILED", `${quoted(url.href)} redirects to what is no address.`);
  }
}

const textual =
  /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|yaml|toml|javascript|ecmascript|graphql|sql|x-sh|x-yaml|x-ndjson|xhtml)\b)|^application\/xhtml\+xml/;

function checkText(url: URL, contentType: string): void {
  const type = contentType.split(";", 1)[0]!.trim();
  if (type === "" || textual.test(type)) return;
  throw toolError("FETCH_FAILED", `${quoted(url.href)} is ${quoted(type)}, and only text can be shown.`);
}

/** Reads and unpacks until the bound; what a small packed body would unpack to never stands in memory. */
async function readBody(
  body: Readable,
  encoding: string | undefined,
  bytesMax: number,
  url: URL,
): Promise<{ readonly body: Buffer; readonly cut: boolean }> {
  const unpacker = unpackerOf(encoding, url);
  const chunks: Buffer[] = [];
  let rest = bytesMax;
  let packedRest = bytesMax;
  let cut = false;
  const enough = new AbortController();
  const stop = (): void => {
    cut = true;
    enough.abort();
  };
  // What unpacks to nothing is read only so far too.
  body.on("data", (chunk: Buffer) => {
    packedRest -= chunk.length;
    if (packedRest < 0) stop();
  });
  const keep = async (source: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of source) {
      chunks.push(chunk.subarray(0, rest));
      rest -= chunk.length;
      if (rest < 0) return stop();
    }
  };
  try {
    await pipeline(body, unpacker, keep, { signal: enough.signal });
  } catch (error) {
    if (!cut) throw error;
  }
  return { body: Buffer.concat(chunks), cut };
}

function unpackerOf(encoding: string | undefined, url: URL): Transform {
  const packing = (encoding ?? "").trim().toLowerCase();
  switch (packing) {
    case "":
    case "identity":
      return new PassThrough();
    case "gzip":
    case "x-gzip":
    case "deflate":
      return createUnzip();
    case "br":
      return createBrotliDecompress();
    default:
      throw toolError("FETCH_FAILED", `${quoted(url.href)} is packed as ${quoted(packing)}, which was not asked for.`);
  }
}

/** Tells a failed request in one line; an error of this package passes through, also as somebody's cause. */
function fetchError(url: URL, error: unknown): Error {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (CodedError.is(cause)) return cause;
  const code = systemCodeOf(error);
  const reason = code === undefined ? String(error) : reasonOf(code, error);
  return toolError("FETCH_FAILED", `${quoted(url.href)} could not be fetched: ${reason}.`, error);
}

function reasonOf(code: string, error: unknown): string {
  switch (code) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "its name is not known";
    case "ECONNREFUSED":
      return "nobody listens there";
    case "ECONNRESET":
    case "EPIPE":
    case "UND_ERR_SOCKET":
      return "the server broke the connection off";
    case "ETIMEDOUT":
    case "UND_ERR_CONNECT_TIMEOUT":
      return "the server cannot be reached";
    case "Z_DATA_ERROR":
    case "Z_BUF_ERROR":
      return "its packed content is damaged";
    default:
      return error instanceof Error ? error.message : code;
  }
}
