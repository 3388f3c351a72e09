import { CodedError } from "@turnkeeper/kernel";

/** How much of everything strangers may have of this process at once. */
export interface GatewayLimits {
  /** The largest body, in bytes. Default 2,097,152: an input of the greatest size, written as JSON. */
  readonly bodyBytes?: number;
  /** Calls that wait or run, over all sessions; more are 429. Default 1000. */
  readonly callCount?: number;
  /** The same of one session, so that none takes the place of all others. Default 100. */
  readonly callCountPerSession?: number;
  /** Inputs of one session that wait in the store; more are 429. Default 100. */
  readonly queueLength?: number;
  /** Sessions with inputs that wait for nobody, as those of a gateway that died, that are run at once. Default 20. */
  readonly waitingSessionCount?: number;
  /** Event streams that are open; more are 429. Default 1000. */
  readonly streamCount?: number;
  /** What waits for one slow reader, in bytes; then it is dropped, and comes back where it was. Default 1,048,576. */
  readonly streamBufferBytes?: number;
  /** Connections; more are not taken. Default 4000: every stream, every call, and room for probes. */
  readonly connectionCount?: number;
}

/** Where the gateway's log goes: one JSON object a line. */
export interface LogOptions {
  readonly level: "debug" | "info" | "warn" | "error";
  write(line: string): void;
}

export interface GatewayOptions {
  /** Where to listen. Default 127.0.0.1: only this machine. */
  readonly hostname?: string;
  /** Default 8377; 0 takes a free one. */
  readonly port?: number;
  /** The bearer token every request must carry. Without one only a loopback address is served. */
  readonly token?: string;
  /** Further names in a Host header that are ours: what a reverse proxy is called outside. Default none. */
  readonly allowedHosts?: readonly string[];
  /** Origins of pages elsewhere that may call us, as `https://name:port`. Default none: no page but our own. */
  readonly allowedOrigins?: readonly string[];
  readonly limits?: GatewayLimits;
  /** How long `close` lets turns go to their end, in milliseconds, before it stops them as `shutdown`. Default 10,000. */
  readonly drainMs?: number;
  /**
   * How long a session is kept that a request without a name began (`chat-…`) and nobody has used since, in milliseconds.
   * Default 30 days: as long as OpenAI keeps a response.
   */
  readonly keepMs?: number;
  /** Default: nothing is logged. */
  readonly log?: LogOptions;
}

export type ResolvedGatewayOptions = Required<Omit<GatewayOptions, "token" | "log" | "limits">> & {
  readonly token: string | undefined;
  readonly log: LogOptions | undefined;
  readonly limits: Required<GatewayLimits>;
};

interface GatewayDefaults {
  readonly hostname: string;
  readonly port: number;
  readonly limits: Required<GatewayLimits>;
  readonly drainMs: number;
  readonly keepMs: number;
}

/** What an option that is not given takes; the reason of each number stands at the option. */
export const gatewayDefaults: GatewayDefaults = Object.freeze({
  hostname: "127.0.0.1",
  port: 8377,
  limits: Object.freeze({
    bodyBytes: 2_097_152,
    callCount: 1000,
    callCountPerSession: 100,
    queueLength: 100,
    waitingSessionCount: 20,
    streamCount: 1000,
    streamBufferBytes: 1_048_576,
    connectionCount: 4000,
  }),
  drainMs: 10_000,
  keepMs: 30 * 86_400_000,
});

function refuse(option: string, expected: string, got: unknown): never {
  throw new CodedError("OPTION_INVALID", `Gateway option ${option}: expected ${expected}, got ${String(got)}.`, {
    context: { option },
  });
}

const known: Readonly<Record<keyof GatewayOptions, true>> = {
  hostname: true,
  port: true,
  token: true,
  allowedHosts: true,
  allowedOrigins: true,
  limits: true,
  drainMs: true,
  keepMs: true,
  log: true,
};

function onlyKnown(options: object, names: object, section = ""): void {
  const stranger = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (stranger !== undefined)
    refuse(`${section}${stranger}`, `one of ${Object.keys(names).join(", ")}`, "an unknown option");
}

function resolveLimits(limits: GatewayLimits): Required<GatewayLimits> {
  onlyKnown(limits, gatewayDefaults.limits, "limits.");
  const resolved = { ...gatewayDefaults.limits, ...limits };
  for (const [name, value] of Object.entries(resolved)) {
    if (!Number.isSafeInteger(value) || value < 1) refuse(`limits.${name}`, "a whole number above 0", value);
  }
  return Object.freeze(resolved);
}

/** A token that can be guessed protects nothing, and one with a space or a line end cannot be sent. */
function checkedToken(token: string | undefined): string | undefined {
  if (token === undefined || /^[\x21-\x7e]{8,512}$/.test(token)) return token;
  throw new CodedError(
    "OPTION_INVALID",
    "Gateway option token: expected 8 to 512 printable ASCII characters without spaces; make one with: openssl rand -hex 32.",
    { context: { option: "token" } },
  );
}

function checkedOrigin(origin: string): string {
  const isOrigin = URL.canParse(origin) && new URL(origin).origin === origin.toLowerCase();
  return isOrigin ? origin.toLowerCase() : refuse("allowedOrigins", "origins like https://name:port", origin);
}

/** Checks every value; throws `OPTION_INVALID` naming option, expectation and value, the token's value excepted. */
export function resolveGatewayOptions(options: GatewayOptions): ResolvedGatewayOptions {
  onlyKnown(options, known);
  const {
    hostname = gatewayDefaults.hostname,
    port = gatewayDefaults.port,
    drainMs = gatewayDefaults.drainMs,
    keepMs = gatewayDefaults.keepMs,
  } = options;
  if (hostname === "") refuse("hostname", "an address", JSON.stringify(hostname));
  if (!Number.isInteger(port) || port < 0 || port > 65_535) refuse("port", "a port from 0 to 65535", port);
  if (!Number.isFinite(drainMs) || drainMs < 0) refuse("drainMs", "a finite number of at least 0", drainMs);
  if (!Number.isFinite(keepMs) || keepMs < 60_000) refuse("keepMs", "a finite number of at least 60000", keepMs);
  return Object.freeze({
    hostname,
    port,
    drainMs,
    keepMs,
    token: checkedToken(options.token),
    allowedHosts: (options.allowedHosts ?? []).map((name) => name.toLowerCase()),
    allowedOrigins: (options.allowedOrigins ?? []).map(checkedOrigin),
    limits: resolveLimits(options.limits ?? {}),
    log: options.log,
  });
}
