import { z } from "zod";
import { approvalRules } from "./approval-schema.ts";
import { defaultConfig, toolNames } from "./config.ts";
import type { Config } from "./config.ts";
import { delegation } from "./delegation-schema.ts";
import { mcpServers } from "./mcp-server-schema.ts";
import { model, modelName, provider } from "./model-schema.ts";
import { seconds } from "./seconds.ts";
import { turnLease } from "./turn-lease-schema.ts";

const { agent, tools, gateway, store } = defaultConfig;

/** As the tool has it: a name or an address, in brackets where it has colons, and perhaps a port. */
const hostPattern = /^(?:\[[0-9a-fA-F:.]+\]|[^\s/:@[\]]+)(?::\d{1,5})?$/;

const configSchema = z.strictObject({
  model: modelName()
    .default(defaultConfig.model)
    .describe("PROVIDER/MODEL; providers: openai, anthropic, openai-compatible, demo."),
  fallback: z
    .array(modelName())
    .default([...defaultConfig.fallback])
    .describe("Models that answer in its place, in this order, when it cannot."),
  models: z.record(modelName(), model).default({}).describe("What is to be known of single models, by PROVIDER/MODEL."),
  providers: z
    .strictObject({
      openai: provider.optional(),
      anthropic: provider.optional(),
      "openai-compatible": provider.optional(),
    })
    .prefault({}),
  store: z
    .strictObject({
      url: z
        .string()
        .min(1)
        .optional()
        .describe("A path or file: URL, relative to the home folder, or a postgres:// URL. Default: state.db there."),
      listen_url: z
        .string()
        .default(store.listen_url)
        .describe(
          "Where wake-ups are listened for when url leads to a pooler: the server itself, or none to poll. Default: at url.",
        ),
      journal_mode: z
        .enum(["wal", "delete"])
        .default(store.journal_mode)
        .describe("The journal of a new store; an existing one keeps its own."),
    })
    .prefault({}),
  agent: z
    .strictObject({
      turn_lease: turnLease.prefault({}),
      turn_liveness: z
        .strictObject({
          timeout_s: z
            .number()
            .default(agent.turn_liveness.timeout_s)
            .describe("A turn without progress for so long is stopped; 0 or less turns the watchdog off."),
          poll_s: z
            .number()
            .positive()
            .optional()
            .describe("How often progress is looked at. Default: 15, or a quarter of a shorter timeout_s."),
        })
        .prefault({}),
      compression: z
        .strictObject({
          threshold: z
            .number()
            .positive()
            .max(1)
            .default(agent.compression.threshold)
            .describe(
              "Share of the model's window at which a conversation is summarised. The default means 0.75 of a window below 512,000 tokens.",
            ),
          context_timeout_s: seconds()
            .default(agent.compression.context_timeout_s)
            .describe("How long a summary may be silent; five times that ends it."),
        })
        .prefault({}),
      guardrails: z
        .strictObject({
          hard_stop: z
            .enum(["auto", "on", "off"])
            .default(agent.guardrails.hard_stop)
            .describe("Whether a turn that repeats itself is stopped."),
        })
        .prefault({}),
      delegation: delegation.prefault({}),
      max_iterations: z.int().min(1).max(100_000).default(agent.max_iterations).describe("Model calls in one turn."),
      title_model: modelName()
        .optional()
        .describe("PROVIDER/MODEL that names new sessions by what they are about. Without it their first messages do."),
    })
    .prefault({}),
  tools: z
    .strictObject({
      enabled: z
        .array(z.enum(toolNames))
        .default([...tools.enabled])
        .describe("The tools that the model is offered."),
      approval: approvalRules.default("ask"),
      shell: z
        .strictObject({
          timeout_s: seconds().max(86_400).default(tools.shell.timeout_s).describe("The longest one command may run."),
        })
        .prefault({}),
      fetch_url: z
        .strictObject({
          timeout_s: seconds().max(600).default(tools.fetch_url.timeout_s).describe("How long one page may take."),
          allow_hosts: z
            .array(z.string().regex(hostPattern, "expected HOST or HOST:PORT"))
            .default([...tools.fetch_url.allow_hosts])
            .describe("Hosts that are fetched though they are not on the public Internet."),
        })
        .prefault({}),
    })
    .prefault({}),
  gateway: z
    .strictObject({
      host: z.string().min(1).default(gateway.host).describe("The address the HTTP server binds to."),
      port: z.int().min(0).max(65_535).default(gateway.port).describe("Its port; 0 takes a free one."),
      allow_hosts: z
        .array(z.string().regex(/^[^\s/:@[\]]+$/, "expected a name without a port"))
        .default([...gateway.allow_hosts])
        .describe("Further names that it answers to: what a reverse proxy is called outside."),
      allow_origins: z
        .array(z.string().regex(/^https?:\/\/[^\s/@]+$/, "expected an origin like https://name:port"))
        .default([...gateway.allow_origins])
        .describe("Origins of pages elsewhere that may call it. Default: none."),
      tools: z
        .array(z.union([z.enum(toolNames), z.string().regex(/^mcp__[a-zA-Z0-9_*-]+$/)], { error: "expected tools" }))
        .default([...gateway.tools])
        .describe(
          "Which of tools.enabled, and which MCP tools (mcp__git__* for several), sessions over HTTP have. Default: none.",
        ),
      drain_s: z
        .number()
        .min(0)
        .max(86_400)
        .default(gateway.drain_s)
        .describe("How long turns may go on at a shutdown before they are stopped."),
      keep_days: z
        .number()
        .min(0.001)
        .max(36_500)
        .default(gateway.keep_days)
        .describe("How long a session that a request without a name began (chat-...) is kept that nobody uses."),
      log_level: z
        .enum(["debug", "info", "warn", "error", "off"])
        .default(gateway.log_level)
        .describe("What it logs, as JSON lines on stderr."),
    })
    .prefault({}),
  telemetry: z
    .strictObject({
      otlp_endpoint: z
        .url({ protocol: /^https?$/ })
        .optional()
        .describe("Where the gateway sends its turns as OpenTelemetry spans: an OTLP collector. Default: nowhere."),
    })
    .prefault({}),
  mcp_servers: mcpServers
    .default({})
    .describe("MCP servers by name; their tools are named mcp__NAME__TOOL and need approval."),
});

/** The JSON Schema of config.yaml, for editors. */
export function configJsonSchema(): Record<string, unknown> {
  return { ...z.toJSONSchema(configSchema, { io: "input" }), title: "Turnkeeper config.yaml" };
}

/** Fills in the defaults that depend on another setting; where the store is depends on the home and is left open. */
function completed(checked: z.output<typeof configSchema>): Config {
  const { ttl_s, renew_s, wait_s } = checked.agent.turn_lease;
  const { timeout_s, poll_s } = checked.agent.turn_liveness;
  return {
    ...checked,
    store: { ...checked.store, url: checked.store.url ?? "" },
    agent: {
      ...checked.agent,
      turn_lease: { ttl_s, wait_s, renew_s: renew_s ?? Math.min(agent.turn_lease.renew_s, ttl_s / 5) },
      turn_liveness: {
        timeout_s,
        poll_s:
          poll_s ?? (timeout_s > 0 ? Math.min(agent.turn_liveness.poll_s, timeout_s / 4) : agent.turn_liveness.poll_s),
      },
    },
  };
}

/** Something that a file says and that no setting can be. */
export type ConfigIssue = z.core.$ZodIssue;

/** What a file says as settings; or what of it none can be. */
export function readSettings(
  raw: Readonly<Record<string, unknown>>,
): { readonly config: Config } | { readonly issues: readonly ConfigIssue[] } {
  const result = configSchema.safeParse(raw);
  return result.success ? { config: completed(result.data) } : { issues: result.error.issues };
}
