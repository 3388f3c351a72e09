import { hash, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import { CodedError } from "@turnkeeper/kernel";
import type { ResolvedGatewayOptions } from "./gateway-options.ts";
import { Refusal } from "./refusal.ts";
import { routeConfigOf } from "./route.ts";

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

export function isLoopback(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, "");
  return bare === "localhost" || bare === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(bare);
}

/** Refuses to listen where strangers could reach a gateway that asks for nothing. */
export function checkBinding(hostname: string, token: string | undefined): void {
  if (token !== undefined || isLoopback(hostname)) return;
  throw new CodedError(
    "GATEWAY_UNPROTECTED",
    `Refusing to listen on ${hostname} without a token: anybody who reaches it could run turns here. Set TURNKEEPER_GATEWAY_TOKEN, or listen on 127.0.0.1.`,
  );
}

/** The one value of a header; nothing where it is missing or there are several. */
function onlyValueOf(rawHeaders: readonly string[], name: string): string | undefined {
  const values = rawHeaders.filter((_value, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
  return values.length === 1 ? values[0] : undefined;
}

/** Name and port of a Host header or an origin's authority. */
const withoutPort = (authority: string): string => authority.replace(/:\d{1,5}$/, "").toLowerCase();

/**
 * Decides who is served, before anything of a request is read: Host first (a page of a foreign name that resolves to
 * this address sends its own name; an IP address cannot be rebound), then Origin (a page elsewhere), then the token.
 */
export class Access {
  readonly #options: ResolvedGatewayOptions;
  /** Digests are compared, in constant time and of one length; the token itself is kept nowhere. */
  readonly #tokenDigest: Buffer | undefined;

  constructor(options: ResolvedGatewayOptions) {
    this.#options = options;
    this.#tokenDigest = options.token === undefined ? undefined : digest(options.token);
  }

  /**
   * Lets pages of allowed origins read what they get, and answers the question that their browsers ask first. Pages of
   * any other origin get no such header and no such answer.
   */
  answersPreflight(request: FastifyRequest, reply: FastifyReply): boolean {
    const { origin } = request.headers;
    if (origin === undefined || !this.#options.allowedOrigins.includes(origin.toLowerCase())) return false;
    reply.headers({
      "access-control-allow-origin": origin,
      "access-control-expose-headers": "retry-after, x-request-id",
      "cross-origin-resource-policy": "cross-origin",
      vary: "origin",
    });
    const isPreflight = request.method === "OPTIONS" && "access-control-request-method" in request.headers;
    if (isPreflight) {
      reply.headers({
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": request.headers["access-control-request-headers"] ?? "",
        "access-control-max-age": "600",
      });
    }
    return isPreflight;
  }

  /** Throws the `Refusal` of a request that is not served. */
  check(request: FastifyRequest): void {
    const { rawHeaders } = request.raw;
    const host = onlyValueOf(rawHeaders, "host");
    if (host === undefined || !this.#isOwnName(withoutPort(host)))
      throw new Refusal(403, "host_foreign", "This gateway does not answer to that Host.");
    if (!this.#isOwnOrigin(request.headers.origin, host))
      throw new Refusal(403, "origin_foreign", "Pages of that origin may not call this gateway.");
    if (routeConfigOf(request).access === "open" || this.#carriesToken(request.headers.authorization)) return;
    throw new Refusal(401, "unauthorised", "Send the gateway's token as Authorization: Bearer …", {
      headers: { "www-authenticate": "Bearer" },
    });
  }

  #isOwnName(name: string): boolean {
    const { hostname, allowedHosts } = this.#options;
    const bare = name.replace(/^\[|\]$/g, "");
    if (isLoopback(name) || allowedHosts.includes(bare)) return true;
    if (isLoopback(hostname)) return false;
    return bare === hostname.toLowerCase() || isIP(bare) !== 0;
  }

  /** A request without an Origin comes from no page, or from a page of the same origin that only reads. */
  #isOwnOrigin(origin: string | undefined, host: string): boolean {
    if (origin === undefined) return true;
    if (this.#options.allowedOrigins.includes(origin.toLowerCase())) return true;
    // `null` (a sandboxed page, a file) and what is no URL have no host.
    return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
  }

  #carriesToken(header: string | undefined): boolean {
    if (this.#tokenDigest === undefined) return true;
    const given = /^Bearer (\S+)$/i.exec(header ?? "")?.[1] ?? "";
    return timingSafeEqual(digest(given), this.#tokenDigest);
  }
}
