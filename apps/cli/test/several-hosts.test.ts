import { fileURLToPath } from "node:url";
import { findPostgres, startPostgres } from "@turnkeeper/postgres-server";
import type { PostgresServer } from "@turnkeeper/postgres-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventsOf, makeHome, runCli, startCli } from "./outside/built-cli.ts";
import type { CliOptions } from "./outside/built-cli.ts";
import { EventReader } from "./outside/event-reader.ts";
import {
  compatibleConfig,
  makeGate,
  openAiGatedText,
  openAiStall,
  openAiText,
  serveModel,
} from "./outside/model-server.ts";
import type { ModelServer } from "./outside/model-server.ts";
import { startGateway } from "./outside/started-gateway.ts";

const preload = fileURLToPath(new URL("outside/other-host.mjs", import.meta.url));

// Needs a server of PostgreSQL on this machine: its binaries, or PG_BIN. The hosts are processes that know nothing of
// each other but the store: homes and sockets, host names, boots and clocks are each its own.
describe.skipIf(findPostgres() === undefined)("several hosts with one store", () => {
  let server: PostgresServer | undefined;
  beforeAll(async () => void (server = await startPostgres()), 60_000);
  afterAll(() => server?.close());

  let schemaCount = 0;
  /** Hosts that share a schema of their own; their clocks are hours apart. */
  function makeHosts(model: ModelServer, restHere = ""): { readonly here: CliOptions; readonly there: CliOptions } {
    const url = `${server?.url}?schema=hosts_${++schemaCount}`;
    const config = `${compatibleConfig(model)}\nstore: { url: "${url}" }\n`;
    const hostOf = (name: string, offHours: number): CliOptions => ({
      home: makeHome(`${config}${name === "alpha" ? restHere : ""}`),
      env: { NODE_OPTIONS: `--import=${preload}`, OTHER_HOST: name, OTHER_HOST_OFF_S: `${offHours * 3600}` },
    });
    return { here: hostOf("alpha", -5), there: hostOf("beta", 5) };
  }

  /** When the stopped turn ended, by the server's clock; and what a command takes now. */
  async function turnsEnd(
    host: CliOptions,
    session: string,
  ): Promise<{ readonly endedAtMs: number; readonly commandMs: number }> {
    const beforeMs = performance.now();
    const { stdout } = await runCli(["sessions", "export", session], host);
    const commandMs = performance.now() - beforeMs;
    for (const line of stdout.trimEnd().split("\n")) {
      const { stop, endedAtMs } = JSON.parse(line) as { stop?: object; endedAtMs?: number };
      if (stop !== undefined && endedAtMs !== undefined) return { endedAtMs, commandMs };
    }
    throw new Error(`No turn was stopped: ${stdout}`);
  }

  it("a stop reaches the holder on the other, why names host and process, and the waiter goes on", async () => {
    const model = await serveModel(openAiStall("begun"), openAiText("the answer"));
    const { here, there } = makeHosts(model);
    const first = startCli(["run", "first message", "--session", "s", "--json"], here);
    await first.sees(/begun/);
    const second = startCli(["run", "second message", "--session", "s"], there);
    await second.sees(new RegExp(`held by pid ${first.pid} on alpha`), "stderr");
    const why = await runCli(["why", "s"], there);
    expect(why.stdout).toContain(`pid ${first.pid} on alpha`);
    // The ages are the server's, though the clocks of the two hosts are ten hours apart.
    const whyNow = await runCli(["why", "s", "--json"], there);
    const { turn } = JSON.parse(whyNow.stdout) as { readonly turn: { readonly ageMs: number } };
    expect(turn.ageMs).toBeLessThan(600_000);
    expect(turn.ageMs).toBeGreaterThan(0);
    expect(await runCli(["stop", "s"], there)).toMatchObject({ code: 0 });
    // The server's clock is this machine's, and what the hosts believe theirs to be has no say.
    const askedAtMs = Date.now();
    const { code, stdout } = await first.ended;
    expect(code).toBe(130);
    const { endedAtMs, commandMs } = await turnsEnd(there, "s");
    // Within a second; on a machine so busy that a command takes longer, while one could start and answer.
    expect(endedAtMs - askedAtMs).toBeLessThan(Math.max(1_000, commandMs));
    expect(eventsOf(stdout).at(-1)).toMatchObject({
      type: "turn.finished",
      outcome: "interrupted",
      reason: "user-stop",
    });
    expect(await second.ended).toMatchObject({ code: 0, stdout: "the answer\n" });
    expect(await runCli(["sessions", "verify"], here)).toMatchObject({ code: 0 });
  }, 120_000);

  it("an input that one accepts is run by the other, which has the session", async () => {
    const gate = makeGate();
    const model = await serveModel(openAiGatedText(gate, "fi", "rst"), openAiText("second"));
    const { here, there } = makeHosts(model);
    const holder = startCli(["run", "first message", "--session", "s", "--json"], here);
    await holder.sees(/"fi"/);
    const left = await runCli(["run", "second message", "--session", "s", "--on-busy", "queue", "--json"], there);
    expect(eventsOf(left.stdout).map(({ type }) => type)).toContain("input.accepted");
    gate.open();
    expect(await holder.ended).toMatchObject({ code: 0 });
    const shown = await runCli(["sessions", "show", "s", "--json"], there);
    const { inputs } = JSON.parse(shown.stdout) as { readonly inputs: readonly { readonly end: string }[] };
    expect(inputs.map(({ end }) => end)).toEqual(["answered", "answered"]);
    expect(model.requests).toHaveLength(2);
  }, 120_000);

  /** Of a host whose processes are believed in for so long after their last word. */
  const brief = "agent: { turn_lease: { ttl_s: 2 } }\n";

  for (const { what, signal } of [
    { what: "a process that was killed", signal: "SIGKILL" },
    { what: "a process that stands still, and goes on later,", signal: "SIGSTOP" },
  ] as const) {
    it(`what ${what} was to run is run by the other host, once`, async () => {
      const gate = makeGate();
      const taken = makeGate();
      const model = await serveModel(openAiGatedText(gate, "fi", "rst"), async (response, request) => {
        taken.open();
        await openAiText("second")(response, request);
      });
      const { here, there } = makeHosts(model, brief);
      const holder = startCli(["run", "first message", "--session", "s"], there);
      await holder.sees(/fi/);
      const command = ["run", "second message", "--session", "s", "--input-id", "second", "--json"];
      const waiter = startCli(command, here);
      await waiter.sees(/"input\.accepted"/);
      waiter.child.kill(signal);
      gate.open();
      expect(await holder.ended).toMatchObject({ code: 0 });
      // Nobody asks for it any more, or can: the gateway finds it once its process has said nothing for its time.
      const { process: gateway } = await startGateway(there);
      await taken.opened;
      if (signal === "SIGSTOP") waiter.child.kill("SIGCONT");
      // The caller comes back, as itself or with the same id, and is told the one answer.
      const told = await (signal === "SIGSTOP" ? waiter.ended : runCli(command, here));
      expect(told).toMatchObject({ code: 0 });
      expect(eventsOf(told.stdout).at(-1)).toMatchObject({ type: "turn.finished", outcome: "answered" });
      expect(model.requests).toHaveLength(2);
      gateway.child.kill("SIGTERM");
      expect(await gateway.ended).toMatchObject({ code: 0 });
      const shown = await runCli(["sessions", "show", "s", "--json"], there);
      const { inputs } = JSON.parse(shown.stdout) as { readonly inputs: readonly { readonly end: string }[] };
      expect(inputs.map(({ end }) => end)).toEqual(["answered", "answered"]);
      expect(await runCli(["sessions", "verify"], there)).toMatchObject({ code: 0 });
    }, 120_000);
  }

  it("a stream that broke with its gateway is resumed on the other's, from the event that came last", async () => {
    const gate = makeGate();
    const model = await serveModel(openAiGatedText(gate, "half an ", "answer"));
    const { here, there } = makeHosts(model);
    const holder = await startGateway(here);
    const other = await startGateway(there);
    const response = await fetch(`${holder.url}/v1/sessions/s/turns`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ input: "Hi", inputId: "i" }),
    });
    const before = new EventReader(response);
    await before.until(({ type }) => type === "text.delta");
    const headers = { "last-event-id": before.lastId };
    const following = fetch(`${other.url}/v1/sessions/s/events`, { headers });
    gate.open();
    const after = new EventReader(await following);
    await after.until(({ type }) => type === "turn.finished");
    after.leave();
    before.leave();
    expect(after.events.at(-1)).toMatchObject({ type: "turn.finished", outcome: "answered" });
    expect(after.events.filter(({ type }) => type === "turn.started")).toEqual([]);
    expect(after.text).not.toContain("half an ");
    for (const { process: gateway } of [holder, other]) gateway.child.kill("SIGTERM");
    for (const { process: gateway } of [holder, other]) expect(await gateway.ended).toMatchObject({ code: 0 });
  }, 120_000);
});
