import { createHash, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import { CodedError } from "@turnkeeper/kernel";

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Whether an Authorization header carries the token. Digests are compared, in constant time and of one length. */
export function carriesToken(header: string | undefined, token: string): boolean {
  const given = /^Bearer (.+)$/.exec(header ?? "")?.[1] ?? "";
  return timingSafeEqual(digest(given), digest(token));
}

export function isLoopback(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, "");
  return bare === "localhost" || bare === "::1" || /^127\.\d+\.\d+\.\d+$/.test(bare);
}

/** Refuses to listen where strangers could reach a gateway that asks for nothing. */
export function checkBinding(hostname: string, token: string | undefined): void {
  if (token !== undefined || isLoopback(hostname)) return;
  throw new CodedError(
    "GATEWAY_UNPROTECTED",
    `Refusing to listen on ${hostname} without a token: anybody who reaches it could run tools here. Set TURNKEEPER_GATEWAY_TOKEN, or listen on 127.0.0.1.`,
  );
}

/**
 * Whether a request's Host is one of ours. A page of a foreign name that resolves to this address (DNS rebinding) sends
 * its own name; an IP address cannot be rebound. Two Host headers are nobody's.
 */
export function isOwnHost(rawHeaders: readonly string[], hostname: string): boolean {
  const hosts = rawHeaders.filter(
    (_value, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === "host",
  );
  const [given] = hosts;
  if (hosts.length !== 1 || given === undefined) return false;
  const name = given.replace(/:\d+$/, "").toLowerCase();
  const bare = name.replace(/^\[|\]$/g, "");
  if (isLoopback(hostname)) return isLoopback(name);
  return bare === hostname.toLowerCase() || isIP(bare) !== 0 || isLoopback(name);
}
