import type { Agent } from "@turnkeeper/agent-core";
import type { GatewayOptions } from "@turnkeeper/gateway";
import { systemHost } from "@turnkeeper/kernel";
import { setUpUnlessStopped } from "../agent-set-up.ts";
import { closeAll } from "../command-context.ts";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import type { Config, GatewayConfig } from "../config/config.ts";
import { exitCode } from "../exit-code.ts";
import { endLeftProcesses } from "../left-processes.ts";
import type { Telemetry } from "../telemetry.ts";

type GatewayFlags = CommonFlags & { readonly host?: string; readonly port?: number; readonly model?: string };

function optionsOf(io: CommandIo, config: GatewayConfig, flags: GatewayFlags): GatewayOptions {
  const token = io.environment["TURNKEEPER_GATEWAY_TOKEN"];
  const { log_level: level } = config;
  return {
    hostname: flags.host ?? config.host,
    port: flags.port ?? config.port,
    allowedHosts: config.allow_hosts,
    allowedOrigins: config.allow_origins,
    drainMs: config.drain_s * 1000,
    keepMs: config.keep_days * 86_400_000,
    ...(token ? { token } : {}),
    ...(level === "off" ? {} : { log: { level, write: (line) => io.stderr.write(line) } }),
  };
}

/** `turnkeeper gateway`: serves the store until SIGTERM or Ctrl-C, then drains. */
export async function gateway(io: CommandIo, flags: GatewayFlags): Promise<number> {
  const setUp = await setUpUnlessStopped(io, flags, { audience: "http" });
  if (!setUp) return exitCode.ok;
  const { context, seat, seated } = setUp;
  let telemetry: Telemetry | undefined;
  try {
    telemetry = await openTelemetry(io, context.config, seated.agent);
    const { startGateway } = await import("@turnkeeper/gateway");
    const { store, presence } = seat;
    const server = await startGateway(
      { agent: seated.agent, store, presence, endProcesses: endLeftProcesses, host: systemHost },
      optionsOf(io, context.config.gateway, flags),
    );
    io.stdout.line(`Listening on ${server.url}`);
    await stopAsked(io);
    io.stderr.line("Draining.");
    await server.close();
    return exitCode.ok;
  } finally {
    await closeAll([() => seat.close(), async () => telemetry?.close(), () => seated.close()]);
  }
}

/** Nothing of it is loaded where nobody asked for it. */
async function openTelemetry(io: CommandIo, config: Config, agent: Agent): Promise<Telemetry | undefined> {
  const { otlp_endpoint: endpoint } = config.telemetry;
  if (endpoint === undefined) return undefined;
  const { startTelemetry } = await import("../telemetry.ts");
  return startTelemetry(agent, endpoint, (text) => io.stderr.line(text));
}

function stopAsked(io: CommandIo): Promise<void> {
  return new Promise((resolve) => {
    const undo = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) =>
      io.onSignal(signal, () => {
        // A second one ends the process as the system does.
        for (const one of undo) one();
        resolve();
      }),
    );
  });
}
