import { CodedError } from "@turnkeeper/kernel";
import { checkTurnLeaseOptions } from "@turnkeeper/turn-lease";
import { resolveTurnLivenessSettings } from "@turnkeeper/turn-liveness";
import { z } from "zod";
import { defaultConfig, isMapping, toolNames } from "./config.ts";
import type { Config, ConfigFinding } from "./config.ts";
import { delegation } from "./delegation-schema.ts";
import { model, modelName, provider } from "./model-schema.ts";
import { longestS, seconds } from "./seconds.ts";

const { agent, tools, gateway, store } = defaultConfig;

/** As the tool has it: a name or an address, in brackets where it has colons, and perhaps a port. */
const hostPattern = /^(?:\[[0-9a-fA-F:.]+\]|[^\s/:@[\]]+)(?::\d{1,5})?$/;

/** As the package has it: 1 to 32 letters, digits, dashes and single underscores. */
const serverNamePattern = /^(?!.*__)[a-zA-Z0-9][a-zA-Z0-9_-]{0,31}$/;
const texts = z.record(z.string().min(1), z.string());
const mcpServer = z
  .strictObject({
    command: z.string().min(1).optional().describe("The program to start; it speaks on its stdin and stdout."),
    args: z.array(z.string()).optional(),
    env: texts.optional().describe("Variables of its environment; it gets no key of ours."),
    pass_environment: z.array(z.string().min(1)).optional().describe("Names of our variables that it gets."),
    folder: z.string().min(1).optional().describe("Where it starts. Default: the workspace."),
    url: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe("The address of a server over HTTP, in place of a command."),
    headers: texts.optional(),
    token_env: z.string().min(1).optional().describe("Name of the variable that holds its bearer token."),
    start_timeout_s: seconds().max(600).optional().describe("How long it may take to start. Default 30."),
    timeout_s: seconds().max(86_400).optional().describe("The longest one call may be silent. Default 120."),
  })
  .refine(({ command, url }) => (command === undefined) !== (url === undefined), {
    message: "expected a command or a url, and not both",
  });

const decision = z.enum(["ask", "allow", "deny"]);
const callPatterns = z.array(z.string().regex(/\S/, "expected a pattern"));
const toolApproval = z.union([
  decision,
  z.strictObject({
    deny: callPatterns.optional().describe("Calls that are refused; this wins over all else."),
    ask: callPatterns.optional().describe("Calls that are asked for."),
    allow: callPatterns.optional().describe("Calls that run unasked."),
    otherwise: decision.optional().describe("What happens to the tool's other calls."),
  }),
]);
const toolNamePattern = /^[a-zA-Z0-9_*-]+$/;
const approvalRules = z
  .union([decision, z.record(z.string().regex(toolNamePattern), toolApproval)], {
    error: "expected ask, allow, deny, or rules by tool",
  })
  .describe(
    "What happens to a call that needs approval: ask, allow or deny; ask denies it where nobody can be asked. " +
      "Or rules by tool: a name (mcp__git__* for several, * for all that need approval) with one of these words, " +
      "or with lists of patterns: commands (git status*), paths (docs/*), hosts (docs.rs).",
  );

const shortestTtlS = 0.1;

/** The longest renewal that a lease bears, where `renewS` is longer, as turn-lease has it. */
function longestRenewalS(ttlS: number, renewS: number): number | undefined {
  try {
    checkTurnLeaseOptions({ ttlMs: ttlS * 1000, renewEveryMs: renewS * 1000 });
    return undefined;
  } catch (error) {
    if (!CodedError.is(error, "OPTION_INVALID")) throw error;
    const { mostMs } = error.context;
    return typeof mostMs === "number" ? mostMs / 1000 : undefined;
  }
}

const turnLease = z
  .strictObject({
    ttl_s: z
      .number()
      .min(shortestTtlS)
      .max(longestS)
      .default(agent.turn_lease.ttl_s)
      .describe("How long a lease outlives its last renewal."),
    renew_s: z
      .number()
      .min(0.001)
      .max(longestS)
      .optional()
      .describe("How often a lease is renewed; two renewals must fit. Default: 60, or a fifth of a shorter ttl_s."),
    wait_s: z
      .number()
      .min(0)
      .max(longestS)
      .default(agent.turn_lease.wait_s)
      .describe("How long a call waits for a busy session."),
  })
  .superRefine(({ ttl_s, renew_s }, context) => {
    // A ttl_s that is wrong is told and replaced; what renew_s is worth then is another look.
    if (renew_s === undefined || ttl_s < shortestTtlS) return;
    const mostS = longestRenewalS(ttl_s, renew_s);
    if (mostS === undefined) return;
    const message = `expected at most ${mostS}, so that two renewals fit before a lease of ${ttl_s} s runs out`;
    context.addIssue({ code: "custom", path: ["renew_s"], message });
  });

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
  mcp_servers: z
    .record(
      z.string().regex(serverNamePattern, "expected a name of 1 to 32 letters, digits, - and single _"),
      mcpServer,
    )
    .default({})
    .describe("MCP servers by name; their tools are named mcp__NAME__TOOL and need approval."),
});

/** The JSON Schema of config.yaml, for editors. */
export function configJsonSchema(): Record<string, unknown> {
  return { ...z.toJSONSchema(configSchema, { io: "input" }), title: "Turnkeeper config.yaml" };
}

/** A file's settings with everything that is wrong in them replaced by its default, and what was wrong. */
export interface CheckedConfig {
  readonly config: Config;
  /** The part of the file that stands. */
  readonly configured: Readonly<Record<string, unknown>>;
  readonly findings: readonly ConfigFinding[];
}

type Issue = z.core.$ZodIssue;
type Raw = Record<string, unknown>;

const shown = (value: unknown): string => {
  const text = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
};

function valueAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? (value as Raw)[String(key)]
        : undefined,
    raw,
  );
}

/**
 * A setting is replaced as a whole: half of a list is not what anybody wrote, and what lacks a part that it must have
 * is not repaired by taking out what is not there.
 */
function settingOf(raw: unknown, path: readonly PropertyKey[]): readonly string[] {
  const setting: string[] = [];
  for (const key of path) {
    if (Array.isArray(valueAt(raw, setting))) break;
    setting.push(String(key));
  }
  return isMissing(raw, setting) ? setting.slice(0, -1) : setting;
}

function isMissing(raw: unknown, path: readonly PropertyKey[]): boolean {
  return path.length > 0 && valueAt(raw, path) === undefined;
}

function without(raw: Raw, [key = "", ...rest]: readonly string[]): Raw {
  const { [key]: inner, ...others } = raw;
  return rest.length > 0 && isMapping(inner) ? { ...others, [key]: without(inner, rest) } : others;
}

/** What stands in the place of a setting that was wrong; a default may depend on another setting. */
function insteadOf(config: Config, parsed: Raw, path: readonly string[]): string {
  const value = valueAt(config, path);
  if (value === undefined && isMapping(valueAt(parsed, path))) return "it is left out";
  return value === undefined || value === "" || isMapping(value) ? "using the default" : `using ${shown(value)}`;
}

function knownKeysAt(path: readonly PropertyKey[]): string {
  const schema = path.reduce<unknown>(
    (section, key) => valueAt(section, ["properties", key]) ?? valueAt(section, ["additionalProperties"]),
    configJsonSchema(),
  );
  return Object.keys((valueAt(schema, ["properties"]) as Raw | undefined) ?? {}).join(", ");
}

/** A key that an issue is about; where its value is replaced, by what is told once that is known. */
type SchemaFinding = ConfigFinding & { readonly path: readonly string[]; readonly isReplaced: boolean };

const expectationOf = ({ message }: Pick<Issue, "message">): string => message.replace(/^[A-Z][\w ]*: /, "");

function wrongValue(raw: Raw, issue: Issue): string {
  const { path } = issue;
  if (issue.code === "invalid_key") {
    const [ofName] = issue.issues;
    return `${expectationOf(ofName ?? issue)}, got ${shown(path.at(-1))}`;
  }
  const value = valueAt(raw, path);
  if (value !== undefined) return `${expectationOf(issue)}, got ${shown(value)}`;
  return `needs ${String(path.at(-1))}`;
}

function findingsOf(raw: Raw, issue: Issue): readonly SchemaFinding[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const path = [...issue.path.map(String), key];
      const message = `is unknown and ignored; known here: ${knownKeysAt(issue.path)}`;
      return { path, key: path.join("."), message, isReplaced: false };
    });
  }
  const path = settingOf(raw, issue.path);
  return [{ path, key: path.join("."), message: wrongValue(raw, issue), isReplaced: true }];
}

/**
 * Reads `agent.turn_liveness` as its owner does (numeric strings count, what is wrong is told there), so that only
 * unknown keys are left for the schema to find.
 */
function withLiveness(parsed: Raw, findings: Map<string, ConfigFinding>): Raw {
  const { agent: section } = parsed;
  const raw = isMapping(section) ? section["turn_liveness"] : undefined;
  if (!isMapping(section) || raw === undefined) return parsed;
  const settings = resolveTurnLivenessSettings(parsed, (message) => {
    const [, key = "agent.turn_liveness", told = message] = /^(agent\.[\w.]+) (.*)$/.exec(message) ?? [];
    findings.set(key, { key, message: told.replace(/\.$/, "") });
  });
  const { turn_liveness: _wrong, ...others } = section;
  if (!isMapping(raw)) return { ...parsed, agent: others };
  const timeoutS = settings === "off" ? 0 : settings.timeoutMs / 1000;
  const pollS = settings === "off" ? agent.turn_liveness.poll_s : settings.pollMs / 1000;
  const read = {
    ...raw,
    ...("timeout_s" in raw ? { timeout_s: timeoutS } : {}),
    ...("poll_s" in raw ? { poll_s: pollS } : {}),
  };
  return { ...parsed, agent: { ...others, turn_liveness: read } };
}

/**
 * Takes names that are no tool's out of `tools.enabled`, one by one. The list is a restriction: a slip in one name must
 * not fall back to a default that hands out what was left out on purpose.
 */
function withKnownTools(parsed: Raw, findings: Map<string, ConfigFinding>): Raw {
  const { tools: section } = parsed;
  const enabled = isMapping(section) ? section["enabled"] : undefined;
  if (!isMapping(section) || !Array.isArray(enabled)) return parsed;
  const isKnown = (name: unknown): boolean => toolNames.some((known) => known === name);
  const unknown = enabled.filter((name) => !isKnown(name));
  if (unknown.length === 0) return parsed;
  const key = "tools.enabled";
  const names = unknown.map(shown).join(", ");
  findings.set(key, { key, message: `has no tool named ${names}, which is ignored; known: ${toolNames.join(", ")}` });
  return { ...parsed, tools: { ...section, enabled: enabled.filter(isKnown) } };
}

/**
 * Closes what a rule of `tools.approval` is about when the rule is wrong. A rule may be there to forbid: without it a
 * default would ask for, or allow, what nobody meant to.
 */
function withSoundApproval(parsed: Raw, findings: Map<string, ConfigFinding>): Raw {
  const { tools: section } = parsed;
  const rules = isMapping(section) ? section["approval"] : undefined;
  if (!isMapping(section) || !isMapping(rules)) return parsed;
  const sound = Object.entries(rules).map(([name, rule]): readonly [string, unknown] => {
    const isSound = toolNamePattern.test(name) && toolApproval.safeParse(rule).success;
    if (isSound) return [name, rule];
    const key = `tools.approval.${name}`;
    const expected = "expected ask, allow, deny, or lists of patterns under deny, ask, allow, and otherwise";
    findings.set(key, { key, message: `${expected}, got ${shown(rule)}; such calls are denied` });
    return [toolNamePattern.test(name) ? name : "*", "deny"];
  });
  return { ...parsed, tools: { ...section, approval: Object.fromEntries(sound) } };
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

/**
 * Checks a parsed config.yaml and repairs it by removal: every key is optional, so what is wrong or unknown is taken
 * out, told once, and its default stands. Never throws.
 */
export function checkConfig(parsed: Readonly<Record<string, unknown>>): CheckedConfig {
  const findings = new Map<string, ConfigFinding>();
  const replaced = new Map<string, readonly string[]>();
  let raw: Raw = withSoundApproval(withKnownTools(withLiveness(parsed, findings), findings), findings);
  for (;;) {
    const result = configSchema.safeParse(raw);
    if (result.success) {
      const config = completed(result.data);
      const told = [...findings.values()].map((finding): ConfigFinding => {
        const path = replaced.get(finding.key);
        if (!path) return finding;
        const whole = path.join(".");
        const instead = whole === finding.key ? insteadOf(config, parsed, path) : `${whole} is left out`;
        return { ...finding, message: `${finding.message}; ${instead}` };
      });
      return { config, configured: raw, findings: told };
    }
    for (const { path, key, message, isReplaced } of result.error.issues.flatMap((issue) => findingsOf(raw, issue))) {
      // What does without a part that was wrong is no second fault: the part's finding says what came of it.
      const causes = isReplaced ? [...replaced.keys()].filter((inner) => inner.startsWith(`${key}.`)) : [];
      for (const cause of causes) replaced.set(cause, path);
      if (causes.length === 0 && !findings.has(key)) {
        findings.set(key, { key, message });
        if (isReplaced) replaced.set(key, path);
      }
      raw = path.length === 0 ? {} : without(raw, path);
    }
  }
}
