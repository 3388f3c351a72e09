/** Whether a server is reached through a proxy, by the variables that curl and most programs read. */
import { BlockList, isIP } from "node:net";
import { choiceError } from "./errors.ts";
import type { ModelEnvironment } from "./provider-settings.ts";

/** What to hand over in `env`, so that a proxy is used. */
export const proxyVariables: readonly string[] = [
  "HTTPS_PROXY",
  "https_proxy",
  "HTTP_PROXY",
  "http_proxy",
  "ALL_PROXY",
  "all_proxy",
  "NO_PROXY",
  "no_proxy",
];

/** The small one wins, as curl has it. */
function read(env: ModelEnvironment, name: string): string {
  return (env[name.toLowerCase()] ?? env[name])?.trim() ?? "";
}

const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, "");

function isLoopback(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || /^127\.|^::1$/.test(host);
}

function isInBlock(host: string, block: string): boolean {
  const [address = "", bits = ""] = block.split("/");
  const family = isIP(address);
  if (family === 0 || isIP(host) !== family || !/^\d{1,3}$/.test(bits)) return false;
  const type = family === 6 ? "ipv6" : "ipv4";
  const list = new BlockList();
  try {
    list.addSubnet(address, Number(bits), type);
  } catch {
    // More bits than an address has: an entry that means nothing matches nothing.
    return false;
  }
  return list.check(host, type);
}

/** `host`, `.host` and `*.host` mean the host and all below it; `host:port`, an address, a block and `*` too. */
function isExempt(host: string, port: string, entry: string): boolean {
  if (entry === "*") return true;
  if (entry.includes("/")) return isInBlock(host, entry);
  const [, name = entry, wantedPort = ""] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [];
  if (wantedPort !== "" && wantedPort !== port) return false;
  const domain = withoutBrackets(name).replace(/^\*?\./, "");
  return domain !== "" && (host === domain || host.endsWith(`.${domain}`));
}

/**
 * The proxy on the way to `url`, or nothing. A server on this machine is never behind one. Throws `MODEL_OPTION_INVALID`
 * for a value that is no http(s) proxy.
 */
export function proxyFor(url: URL, env: ModelEnvironment): URL | undefined {
  const host = withoutBrackets(url.hostname).toLowerCase();
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const names = [url.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY", "ALL_PROXY"];
  const name = names.find((one) => read(env, one) !== "");
  if (name === undefined || isLoopback(host)) return undefined;
  const exempt = read(env, "NO_PROXY")
    .toLowerCase()
    .split(/[\s,]+/);
  if (exempt.some((entry) => isExempt(host, port, entry))) return undefined;
  const value = read(env, name);
  const text = value.includes("://") ? value : `http://${value}`;
  const proxy = URL.canParse(text) ? new URL(text) : undefined;
  if (proxy && /^https?:$/.test(proxy.protocol) && proxy.hostname !== "") return proxy;
  // Not quoted: a password may stand in it.
  const message = `${name} is no usable proxy: expected http://HOST:PORT or https://HOST:PORT. Correct it, or put ${host} into NO_PROXY.`;
  throw choiceError("MODEL_OPTION_INVALID", message);
}
