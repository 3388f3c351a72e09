import type { ApprovalRules } from "@turnkeeper/tools";

/** The settings of a home, as they stand in its config.yaml: seconds, snake case, every key optional there. */

/** What may be set for one provider. */
export interface ProviderConfig {
  readonly base_url?: string | undefined;
  readonly api_key_env?: string | undefined;
  /** Longest silence of one model wait. Default: `agent.turn_liveness.timeout_s`. */
  readonly silence_s?: number | undefined;
  /** How many tokens one request and its answer may have together. Default: unknown. */
  readonly context_window?: number | undefined;
  /** Tokens in place of a key, refreshed when they are refused or about to expire. */
  readonly oauth?: OauthConfig | undefined;
  /** Which of OpenAI's two APIs to speak. Default: `responses` at api.openai.com, `chat` anywhere else. */
  readonly api?: "chat" | "responses" | undefined;
}

/** Where a provider's tokens are and who refreshes them. */
export interface OauthConfig {
  readonly token_url: string;
  readonly client_id: string;
  /** Name of the environment variable that holds the client's secret. */
  readonly client_secret_env?: string | undefined;
  readonly scope?: string | undefined;
  /** Relative to the home folder. Default: `tokens/PROVIDER.json` there. */
  readonly token_file?: string | undefined;
}

/** What may be said of one model; what is absent is taken from what is known of it. */
export interface ModelConfig {
  readonly context_window?: number | undefined;
  readonly max_output?: number | undefined;
  /** Of a million tokens, in whatever currency. */
  readonly price?:
    | {
        readonly input: number;
        readonly output: number;
        readonly cached_input?: number | undefined;
        readonly cache_write?: number | undefined;
      }
    | undefined;
  /** False: it refuses them. */
  readonly tools?: boolean | undefined;
  readonly system?: boolean | undefined;
  readonly parallel_calls?: boolean | undefined;
  readonly output_limit_field?: "max_tokens" | "max_completion_tokens" | undefined;
  readonly cache?: "key" | "conversation-header" | "breakpoints" | "none" | undefined;
}

export type ConfigurableProvider = "openai" | "anthropic" | "openai-compatible";

export const toolNames: readonly ToolName[] = [
  "shell",
  "read_file",
  "write_file",
  "edit_file",
  "list_files",
  "search_files",
  "fetch_url",
  "delegate",
];

export type ToolName =
  | "shell"
  | "read_file"
  | "write_file"
  | "edit_file"
  | "list_files"
  | "search_files"
  | "fetch_url"
  | "delegate";

/** A program that speaks MCP on its stdin and stdout, or an address that speaks it over HTTP. */
export interface McpServerConfig {
  readonly command?: string | undefined;
  readonly args?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly pass_environment?: readonly string[] | undefined;
  readonly folder?: string | undefined;
  readonly url?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Name of the environment variable that holds a bearer token. */
  readonly token_env?: string | undefined;
  readonly start_timeout_s?: number | undefined;
  readonly timeout_s?: number | undefined;
}

export interface GatewayConfig {
  readonly host: string;
  readonly port: number;
  /** Names that a reverse proxy is called by. */
  readonly allow_hosts: readonly string[];
  /** Origins of pages elsewhere that may call. */
  readonly allow_origins: readonly string[];
  /** Those of `tools.enabled`, and the names of MCP tools (`mcp__git__*` for several), that HTTP sessions have too. */
  readonly tools: readonly string[];
  readonly drain_s: number;
  /** Of sessions that requests without a name began. */
  readonly keep_days: number;
  readonly log_level: "debug" | "info" | "warn" | "error" | "off";
}

/** How subagents run, where not as the agent itself does. */
export interface DelegationConfig {
  readonly max_children: number;
  readonly max_depth: number;
  readonly deadline_s?: number | undefined;
  readonly max_iterations?: number | undefined;
  readonly budget?: { readonly tokens?: number | undefined; readonly cost?: number | undefined } | undefined;
}

export interface Config {
  /** `PROVIDER/MODEL`. */
  readonly model: string;
  /** Models that answer in its place, in this order, when it cannot. */
  readonly fallback: readonly string[];
  /** By `PROVIDER/MODEL`. */
  readonly models: Readonly<Record<string, ModelConfig>>;
  readonly providers: Readonly<Partial<Record<ConfigurableProvider, ProviderConfig | undefined>>>;
  readonly store: {
    /** A path, a `file:` URL, or `postgres://…`. */
    readonly url: string;
    /** Of a store on a server: where this process listens for wake-ups. `none`: nowhere; empty: at `url`. */
    readonly listen_url: string;
    readonly journal_mode: "wal" | "delete";
  };
  readonly agent: {
    readonly turn_lease: { readonly ttl_s: number; readonly renew_s: number; readonly wait_s: number };
    /** `timeout_s` of 0 or less turns the watchdog off. */
    readonly turn_liveness: { readonly timeout_s: number; readonly poll_s: number };
    readonly compression: { readonly threshold: number; readonly context_timeout_s: number };
    readonly guardrails: { readonly hard_stop: "auto" | "on" | "off" };
    readonly delegation: DelegationConfig;
    readonly max_iterations: number;
    /** `PROVIDER/MODEL`: names new sessions by what they are about. */
    readonly title_model?: string | undefined;
  };
  readonly tools: {
    readonly enabled: readonly ToolName[];
    /** One word for all calls that need approval, or rules by tool and pattern. */
    readonly approval: ApprovalRules;
    readonly shell: { readonly timeout_s: number };
    readonly fetch_url: { readonly timeout_s: number; readonly allow_hosts: readonly string[] };
  };
  readonly gateway: GatewayConfig;
  readonly telemetry: {
    /** Where the gateway sends its turns as spans, by OTLP over HTTP. */
    readonly otlp_endpoint?: string | undefined;
  };
  readonly mcp_servers: Readonly<Record<string, McpServerConfig>>;
}

/** The value of every key that nobody set; where the store is depends on the home and is filled in there. */
export const defaultConfig: Config = Object.freeze<Config>({
  model: "openai/gpt-5-mini",
  fallback: [],
  models: {},
  providers: {},
  store: { url: "", listen_url: "", journal_mode: "wal" },
  agent: {
    turn_lease: { ttl_s: 300, renew_s: 60, wait_s: 1800 },
    turn_liveness: { timeout_s: 600, poll_s: 15 },
    compression: { threshold: 0.5, context_timeout_s: 120 },
    guardrails: { hard_stop: "auto" },
    delegation: { max_children: 50, max_depth: 1 },
    max_iterations: 90,
  },
  tools: {
    enabled: toolNames,
    approval: "ask",
    shell: { timeout_s: 600 },
    fetch_url: { timeout_s: 30, allow_hosts: [] },
  },
  gateway: {
    host: "127.0.0.1",
    port: 8377,
    allow_hosts: [],
    allow_origins: [],
    tools: [],
    drain_s: 10,
    keep_days: 30,
    log_level: "info",
  },
  telemetry: {},
  mcp_servers: {},
});

/** Something about the file that a user should know: the default is used in its place. */
export interface ConfigFinding {
  /** Dotted; empty for the file as a whole. */
  readonly key: string;
  readonly line?: number | undefined;
  readonly message: string;
}

/** Every value that is no mapping, by its dotted key. */
export function leavesOf(value: unknown, prefix = ""): ReadonlyMap<string, unknown> {
  const leaves = new Map<string, unknown>();
  for (const [key, inner] of Object.entries(value ?? {})) {
    const path = prefix === "" ? key : `${prefix}.${key}`;
    if (inner === undefined) continue;
    if (!isMapping(inner) || Object.keys(inner).length === 0) leaves.set(path, inner);
    else for (const [leaf, one] of leavesOf(inner, path)) leaves.set(leaf, one);
  }
  return leaves;
}

export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
