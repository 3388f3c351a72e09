import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { defaultConfig } from "../src/config/config.ts";
import { findingLine, loadConfig } from "../src/config/config-file.ts";
import { runInside } from "./inside/command-line.ts";
import { makeFolder, makeHome } from "./outside/built-cli.ts";

async function findings(yaml: string): Promise<readonly string[]> {
  const loaded = await loadConfig(makeHome(yaml));
  return loaded.findings.map((finding) => findingLine("config.yaml", finding));
}

/** The page of the outside contract, word for word. */
const everything = `model: openai/gpt-5-mini
providers:
  openai-compatible: { base_url: http://127.0.0.1:11434/v1, api_key_env: OLLAMA_API_KEY, silence_s: 600 }
store: { url: "~/.turnkeeper/state.db", journal_mode: wal }
agent:
  turn_lease:    { ttl_s: 300, renew_s: 60, wait_s: 1800 }
  turn_liveness: { timeout_s: 600, poll_s: 15 }
  compression:   { threshold: 0.5, context_timeout_s: 120 }
  guardrails:    { hard_stop: auto }
  max_iterations: 90
tools:   { enabled: [shell, read_file, write_file, edit_file, list_files, search_files, fetch_url, delegate], approval: ask, shell: { timeout_s: 600 } }
gateway: { host: 127.0.0.1, port: 8377 }
mcp_servers: {}
`;

describe("config.yaml", () => {
  it("takes every key of the contract, and they are the defaults", async () => {
    const { config, findings: found } = await loadConfig(makeHome(everything));
    expect(found).toEqual([]);
    expect({ ...config, providers: {}, store: { ...config.store, url: "" } }).toEqual(defaultConfig);
  });

  it("absent, empty or a comment gives the defaults in silence", async () => {
    expect(await loadConfig(makeFolder())).toMatchObject({ exists: false, config: defaultConfig, findings: [] });
    for (const yaml of ["", "# nothing\n", "---\n"])
      expect(await loadConfig(makeHome(yaml))).toMatchObject({ exists: true, config: defaultConfig, findings: [] });
  });

  it("takes fractions of a second everywhere", async () => {
    const { config, findings: found } = await loadConfig(
      makeHome(
        "agent: { turn_lease: { ttl_s: 1.5, renew_s: 0.3, wait_s: 0.5 }, turn_liveness: { timeout_s: 0.8, poll_s: 0.05 } }\n",
      ),
    );
    expect(found).toEqual([]);
    expect(config.agent).toMatchObject({
      turn_lease: { ttl_s: 1.5, renew_s: 0.3, wait_s: 0.5 },
      turn_liveness: { timeout_s: 0.8, poll_s: 0.05 },
    });
  });

  it("derives what depends on another setting from it", async () => {
    const { config, findings: found } = await loadConfig(
      makeHome("agent: { turn_lease: { ttl_s: 2 }, turn_liveness: { timeout_s: 2 } }\n"),
    );
    expect(found).toEqual([]);
    expect(config.agent.turn_lease.renew_s).toBe(0.4);
    expect(config.agent.turn_liveness.poll_s).toBe(0.5);
  });

  for (const [yaml, told] of [
    ["model: 7\n", 'config.yaml:1: model: expected string, received number, got 7; using "openai/gpt-5-mini".'],
    ["model: no-slash\n", 'config.yaml:1: model: expected PROVIDER/MODEL, got "no-slash"; using "openai/gpt-5-mini".'],
    [
      "agent:\n  turn_lease:\n    ttl_s: -1\n",
      "config.yaml:3: agent.turn_lease.ttl_s: expected number to be >=0.1, got -1; using 300.",
    ],
    [
      "agent: { turn_lease: { ttl_s: .nan } }\n",
      "config.yaml:1: agent.turn_lease.ttl_s: expected number, received NaN, got NaN; using 300.",
    ],
    [
      "agent: { turn_lease: { ttl_s: 10, renew_s: 9 } }\n",
      "config.yaml:1: agent.turn_lease.renew_s: expected at most 4.5, so that two renewals fit before a lease of 10 s runs out, got 9; using 2.",
    ],
    [
      "agent: { turn_lease: { ttl_s: 0.3, renew_s: 0.13 } }\n",
      "config.yaml:1: agent.turn_lease.renew_s: expected at most 0.125, so that two renewals fit before a lease of 0.3 s runs out, got 0.13; using 0.06.",
    ],
    [
      // What is a legal renewal of the lease that is used is not told as wrong.
      "agent: { turn_lease: { ttl_s: 0.05, renew_s: 0.01 } }\n",
      "config.yaml:1: agent.turn_lease.ttl_s: expected number to be >=0.1, got 0.05; using 300.",
    ],
    [
      "agent: { turn_lease: { ttl_s: 1, renew_s: 0.0001 } }\n",
      "config.yaml:1: agent.turn_lease.renew_s: expected number to be >=0.001, got 0.0001; using 0.2.",
    ],
    [
      "agent: { turn_liveness: { timeout_s: soon } }\n",
      'config.yaml:1: agent.turn_liveness.timeout_s: must be a finite number of seconds (0 or less turns the watchdog off), got "soon"; using 600.',
    ],
    [
      "agent: { turn_liveness: [1] }\n",
      "config.yaml:1: agent.turn_liveness: must be a mapping with timeout_s and poll_s, got a value of type object; using the defaults.",
    ],
    ["agent: 3\n", "config.yaml:1: agent: expected object, received number, got 3; using the default."],
    [
      "store: { journal_mode: off }\n",
      'config.yaml:1: store.journal_mode: expected one of "wal"|"delete", got "off"; using "wal".',
    ],
    [
      "gateway: { port: 99999 }\n",
      "config.yaml:1: gateway.port: expected number to be <=65535, got 99999; using 8377.",
    ],
    [
      "agnet: {}\n",
      /config\.yaml:1: agnet: is unknown and ignored; known here: model, fallback, models, providers, store, agent, tools, gateway, telemetry, mcp_servers\./,
    ],
    [
      "agent: { turn_liveness: { timeuot_s: 3 } }\n",
      /agent\.turn_liveness\.timeuot_s: is unknown and ignored; known here: timeout_s, poll_s\./,
    ],
    [
      "tools: { approval: sometimes }\n",
      'config.yaml:1: tools.approval: expected ask, allow, deny, or rules by tool, got "sometimes"; using "ask".',
    ],
    [
      "tools: { fetch_url: { allow_hosts: ['http://a'] } }\n",
      /tools\.fetch_url\.allow_hosts: expected HOST or HOST:PORT/,
    ],
    ["providers: { acme: {} }\n", /providers\.acme: is unknown/],
    ["models: { a/b: { price: { input: 3 } } }\n", "config.yaml:1: models.a/b.price: needs output; it is left out."],
    [
      // What is missing once the wrong part is gone is no second fault.
      "models: { a/b: { price: { input: cheap } } }\n",
      'config.yaml:1: models.a/b.price.input: expected number, received string, got "cheap"; models.a/b.price is left out.',
    ],
    [
      "providers:\n  openai:\n    oauth: { token_url: 'https://login.example/token' }\n",
      "config.yaml:3: providers.openai.oauth: needs client_id; it is left out.",
    ],
    [
      "mcp_servers: { a: { url: nowhere } }\n",
      'config.yaml:1: mcp_servers.a.url: Invalid URL, got "nowhere"; mcp_servers.a is left out.',
    ],
    [
      "mcp_servers: { a: {} }\n",
      "config.yaml:1: mcp_servers.a: expected a command or a url, and not both, got {}; it is left out.",
    ],
    [
      "mcp_servers: { a b: { command: x } }\n",
      'config.yaml:1: mcp_servers.a b: expected a name of 1 to 32 letters, digits, - and single _, got "a b"; it is left out.',
    ],
    [
      "mcp_servers: { a: { command: x, arguments: [y] } }\n",
      /mcp_servers\.a\.arguments: is unknown and ignored; known here: command, args, env, /,
    ],
    ["a: [unclosed\n", /config\.yaml:2 is not YAML \(.*\); using the defaults\./],
    ["- a\n", "config.yaml:1 must be a mapping of settings; using the defaults."],
    ["a: 1\na: 2\n", "config.yaml:2 is not YAML (Map keys must be unique); using the defaults."],
    ["a: 1\n---\na: 2\n", "config.yaml:2 is not YAML (Several documents; one is known); using the defaults."],
    [
      "tools: { approval: { shell: deny } }\ntools: {}\n",
      "config.yaml:2 is not YAML (Map keys must be unique); using the defaults, and --yes allows nothing.",
    ],
    [
      "models: { constructor: 3 }\n",
      'config.yaml:1: models.constructor: expected PROVIDER/MODEL, got "constructor"; using the default.',
    ],
    ["a: &a [*a]\n", /is unknown|not usable/],
  ] as const) {
    it(`${JSON.stringify(yaml)}: one finding, the default, nothing thrown`, async () => {
      const found = await findings(yaml);
      expect(found).toHaveLength(1);
      if (typeof told === "string") expect(found[0]).toBe(told);
      else expect(found[0]).toMatch(told);
    });
  }

  it("may have rules for approval by tool and pattern, and keeps them as they are", async () => {
    const rules = '{ "*": ask, shell: { allow: ["git status*"], deny: ["rm *"] }, fetch_url: deny }';
    const { config, findings: found } = await loadConfig(makeHome(`tools: { approval: ${rules} }\n`));
    expect(found).toEqual([]);
    expect(config.tools.approval).toEqual({
      "*": "ask",
      shell: { allow: ["git status*"], deny: ["rm *"] },
      fetch_url: "deny",
    });
  });

  it("with a wrong rule for approval denies what the rule is about, and tells it", async () => {
    const rules = '{ shell: { alow: ["git status*"] }, write_file: allow, "rm -rf": allow }';
    const { config, findings: found } = await loadConfig(makeHome(`tools: { approval: ${rules} }\n`));
    expect(config.tools.approval).toEqual({ shell: "deny", write_file: "allow", "*": "deny" });
    expect(found.map((finding) => findingLine("config.yaml", finding))).toEqual([
      expect.stringMatching(/tools\.approval\.shell: expected ask, allow, deny, or lists .*; such calls are denied/),
      expect.stringMatching(/tools\.approval\.rm -rf: .*; such calls are denied/),
    ]);
  });

  it("that restricts the tools stays a restriction: a slip in one name hands out no other tool", async () => {
    const { config, findings: found } = await loadConfig(makeHome("tools: { enabled: [read_file, fly] }\n"));
    expect(config.tools.enabled).toEqual(["read_file"]);
    expect(found.map((finding) => findingLine("config.yaml", finding))).toEqual([
      expect.stringMatching(/tools\.enabled.*"fly".*ignored/),
    ]);
  });

  it("with many faults tells each once and keeps what is right", async () => {
    const { config, findings: found } = await loadConfig(
      makeHome(
        "model: demo/echo\nagent: { max_iterations: many, nope: 1, turn_lease: { wait_s: 5, ttl_s: x } }\ntools: 3\n",
      ),
    );
    expect(found.map(({ key }) => key).toSorted()).toEqual([
      "agent.max_iterations",
      "agent.nope",
      "agent.turn_lease.ttl_s",
      "tools",
    ]);
    expect(config).toMatchObject({
      model: "demo/echo",
      agent: { max_iterations: 90, turn_lease: { wait_s: 5, ttl_s: 300 } },
      tools: defaultConfig.tools,
    });
  });

  it("that is a folder, no text or far too large is told and not used", async () => {
    const home = makeHome();
    const file = path.join(home, "config.yaml");
    mkdirSync(file);
    expect((await loadConfig(home)).findings).toHaveLength(1);
    for (const content of [Buffer.from([0xff, 0xfe, 0x00]), "# x\n".repeat(400_000)]) {
      const other = makeHome();
      writeFileSync(path.join(other, "config.yaml"), content);
      const { config, findings: found } = await loadConfig(other);
      expect(config).toBe(defaultConfig);
      expect(found).toMatchObject([{ key: "", message: expect.stringContaining("using the defaults") }]);
    }
  });

  it("cannot reach into objects that are not its own", async () => {
    const { config, findings: found } = await loadConfig(
      makeHome('"__proto__": { polluted: true }\nconstructor: { prototype: { polluted: true } }\n'),
    );
    expect(config).toMatchObject({ model: defaultConfig.model });
    expect(found.length).toBeGreaterThan(0);
    expect({}).not.toHaveProperty("polluted");
  });
});

describe("turnkeeper config", () => {
  const show = async (
    home: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<ReadonlyMap<string, { readonly value: unknown; readonly source: string }>> => {
    const { stdout } = await runInside(["config", "show", "--json"], { home, env });
    const { settings } = JSON.parse(stdout) as { settings: readonly { key: string; value: unknown; source: string }[] };
    return new Map(settings.map(({ key, value, source }) => [key, { value, source }]));
  };

  it("show says of every setting where it came from", async () => {
    const home = makeHome("model: anthropic/x\nagent:\n  max_iterations: 5\nstore: { url: other.db }\n");
    const settings = await show(home, { OPENAI_BASE_URL: "http://127.0.0.1:1/v1" });
    expect(settings.get("model")).toEqual({ value: "anthropic/x", source: "config.yaml:1" });
    expect(settings.get("agent.max_iterations")).toEqual({ value: 5, source: "config.yaml:3" });
    expect(settings.get("gateway.port")).toEqual({ value: 8377, source: "default" });
    expect(settings.get("store.url")).toEqual({ value: path.join(home, "other.db"), source: "config.yaml:4" });
    expect(settings.get("home")).toEqual({ value: home, source: "environment TURNKEEPER_HOME" });
    expect(settings.get("providers.openai.base_url")).toEqual({
      value: "http://127.0.0.1:1/v1",
      source: "environment OPENAI_BASE_URL",
    });
  });

  it("show tells that the default model gives way to the demo without its key", async () => {
    const home = makeHome();
    expect((await show(home)).get("model")).toEqual({
      value: "demo/tools",
      source: "default, because OPENAI_API_KEY is not set",
    });
    expect((await show(home, { OPENAI_API_KEY: "k" })).get("model")).toEqual({
      value: "openai/gpt-5-mini",
      source: "default",
    });
  });

  it("never prints a key", async () => {
    const env = { OPENAI_API_KEY: "secret-one", ANTHROPIC_API_KEY: "secret-two" };
    for (const args of [["config", "show"], ["doctor"], ["doctor", "--json"]]) {
      const { stdout, stderr } = await runInside(args, { home: makeHome(), env });
      expect(stdout + stderr).not.toContain("secret");
    }
  });

  it("check exits 2 on any finding and 0 without one", async () => {
    expect(await runInside(["config", "check"], { home: makeHome(everything) })).toMatchObject({ code: 0, stdout: "" });
    const wrong = await runInside(["config", "check"], { home: makeHome("agnet: {}\nmodel: 3\n") });
    expect(wrong.code).toBe(2);
    expect(wrong.stdout.trim().split("\n")).toHaveLength(2);
    expect(
      JSON.parse((await runInside(["config", "check", "--json"], { home: makeHome("agnet: {}\n") })).stdout),
    ).toMatchObject({ findings: [{ key: "agnet", line: 1 }] });
  });

  it.each([
    ["model: foo/bar\n", /config\.yaml:1: model: Cannot choose model "foo\/bar": unknown provider "foo"/],
    ["model: demo/nope\n", /config\.yaml:1: model: .*no such demo model/],
    ["agent:\n  title_model: foo/bar\n", /config\.yaml:2: agent\.title_model: Cannot choose model/],
    ["model: demo/echo\nfallback: [demo/slow, foo/bar]\n", /config\.yaml:2: fallback: Cannot choose model "foo\/bar"/],
    ["model: openai-compatible/x\n", /config\.yaml:1: model: .*needs providers\.openai-compatible\.base_url/],
    ["model: openai/x\nproviders: { openai: { base_url: 'ftp://x' } }\n", /config\.yaml:1: model: .*base.*ftp:/i],
  ])("check tells of a model that no key would make usable: %j", async (yaml, told) => {
    const { code, stdout } = await runInside(["config", "check"], {
      home: makeHome(yaml),
      env: { OPENAI_API_KEY: "k" },
    });
    expect(stdout.trim().split("\n")).toEqual([expect.stringMatching(told)]);
    expect(code).toBe(2);
  });

  it("check leaves it to the environment whether a key is set", async () => {
    expect(await runInside(["config", "check"], { home: makeHome("model: anthropic/x\n") })).toMatchObject({ code: 0 });
    const elsewhere = makeHome("model: demo/echo\nstore: { url: 'mysql://me:secret@server/turns' }\n");
    const noStore = await runInside(["config", "check"], { home: elsewhere });
    expect(noStore).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(
        /config\.yaml:2: store\.url: Cannot use the store "mysql:…": give the path of a file/,
      ),
    });
    expect(noStore.stdout).not.toContain("secret");
  });

  it("schema is a JSON Schema that names every default", async () => {
    const { stdout } = await runInside(["config", "schema"], { home: makeHome() });
    expect(JSON.parse(stdout)).toMatchObject({
      $schema: expect.stringContaining("json-schema.org"),
      properties: {
        model: { default: "openai/gpt-5-mini" },
        agent: {
          properties: { turn_lease: { properties: { ttl_s: { default: 300, description: expect.any(String) } } } },
        },
      },
    });
  });

  it("path is where the file is or would be", async () => {
    const home = makeHome();
    expect(await runInside(["config", "path"], { home })).toMatchObject({
      stdout: `${path.join(home, "config.yaml")}\n`,
    });
  });
});
