import { systemHost } from "@turnkeeper/kernel";
import { setUpAgent } from "../agent-set-up.ts";
import { closeAll } from "../command-context.ts";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { exitCode } from "../exit-code.ts";

/** How long requests that run may take to end once the gateway drains. */
const drainMs = 10_000;
const lastWordsMs = 1000;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemHost.timers.after(ms, resolve, { keepAlive: false }));
}

/** `turnkeeper gateway`: serves the store until SIGTERM or Ctrl-C, then drains. */
export async function gateway(
  io: CommandIo,
  flags: CommonFlags & { readonly host?: string; readonly port?: number; readonly model?: string },
): Promise<number> {
  const { context, seat, seated } = await setUpAgent(io, flags);
  const { config } = context;
  try {
    const { startGateway } = await import("@turnkeeper/gateway");
    const token = io.environment["TURNKEEPER_GATEWAY_TOKEN"];
    const server = await startGateway(
      { agent: seated.agent, store: seat.store },
      {
        hostname: flags.host ?? config.gateway.host,
        port: flags.port ?? config.gateway.port,
        ...(token ? { token } : {}),
      },
    );
    io.stdout.line(`Listening on ${server.url}`);
    await stopAsked(io);
    io.stderr.line("Draining.");
    const closed = server.close();
    await Promise.race([closed, pause(drainMs)]);
    // What still runs is stopped as `shutdown`, and its clients are told; then nobody is waited for any more.
    await seated.close();
    await Promise.race([closed, pause(lastWordsMs)]);
    return exitCode.ok;
  } finally {
    await closeAll([() => seat.close(), () => seated.close()]);
  }
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
