import type { Agent, EndProcesses } from "@turnkeeper/agent-core";
import { CodedError, messageOf, systemHost } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { sharedScheduler } from "@turnkeeper/periodic-scheduler";
import type { SharedScheduler } from "@turnkeeper/periodic-scheduler";
import type { StateStore } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import type { FastifyInstance } from "fastify";
import { checkBinding } from "./access.ts";
import { consoleRoutes } from "./console-routes.ts";
import { EventStreams } from "./event-stream.ts";
import { eventRoutes } from "./event-routes.ts";
import { LiveTurns } from "./events/live-turns.ts";
import { resolveGatewayOptions } from "./gateway-options.ts";
import type { GatewayOptions } from "./gateway-options.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { KeptSessions } from "./kept-sessions.ts";
import { LoopDelay } from "./loop-delay.ts";
import { Metrics } from "./metrics.ts";
import { OpenCalls } from "./open-calls.ts";
import { HandedTurns } from "./openai/handed-turns.ts";
import { openAiRoutes } from "./openai/openai-routes.ts";
import { documentRoute, probeRoutes } from "./probe-routes.ts";
import type { Route } from "./route.ts";
import { createServer } from "./server.ts";
import { sessionRoutes } from "./session-routes.ts";
import { StoreFailures } from "./store-failures.ts";
import { turnRoutes } from "./turn-routes.ts";
import { WaitingInputs } from "./waiting-inputs.ts";

export interface GatewayDeps {
  readonly agent: Agent;
  readonly store: StateStore;
  /** The agent's own, where it was given one; else one without a socket is opened. */
  readonly presence?: ProcessPresence;
  /** Ends the processes that a dead turn left on this host; the tools package has it. */
  readonly endProcesses?: EndProcesses;
  /** Default: the system's. */
  readonly host?: Host;
  /** Default: the process's shared scheduler. */
  readonly scheduler?: SharedScheduler;
}

export interface Gateway extends AsyncDisposable {
  readonly url: string;
  /**
   * Drains: nothing new begins, what runs may go to its end for `drainMs`, what still runs then is stopped as
   * `shutdown`, every waiter is answered, every stream ends. Closes the agent with it, not the store. Safe to repeat.
   */
  close(): Promise<void>;
}

/** For answers that are ready to leave once every turn has ended; then connections are cut. */
const lastWordsMs = 1000;

/** The routes of the gateway; another module of routes is one more line here. */
function allRoutes(parts: GatewayParts): readonly Route[] {
  const routes = [
    ...turnRoutes(parts),
    ...openAiRoutes(parts),
    ...eventRoutes(parts),
    ...sessionRoutes(parts),
    ...probeRoutes(parts),
    ...consoleRoutes(),
  ];
  return [...routes, documentRoute(routes)];
}

async function listen(server: FastifyInstance, hostname: string, port: number): Promise<string> {
  try {
    return await server.listen({ host: hostname, port });
  } catch (error) {
    await server.close();
    throw new CodedError(
      "GATEWAY_LISTEN",
      `Cannot listen on ${hostname}:${port}: ${messageOf(error)}. Choose another --port.`,
      { cause: error },
    );
  }
}

/** Lets turns end for a while, stops the rest, and answers everybody before the connections are let go. */
async function drain(parts: GatewayParts, server: FastifyInstance): Promise<void> {
  const { agent, host, options, streams } = parts;
  const drained = agent.close({ drain: true });
  const cancelStop = host.timers.after(options.drainMs, () => void agent.close());
  await drained;
  cancelStop();
  await streams.close();
  const closed = server.close();
  const cancelCut = host.timers.after(lastWordsMs, () => server.server.closeAllConnections());
  await closed;
  cancelCut();
}

/**
 * Serves an agent and its store over HTTP. Throws `OPTION_INVALID`, `GATEWAY_UNPROTECTED` for a public address without a
 * token, `GATEWAY_LISTEN` when the address cannot be had.
 */
export async function startGateway(deps: GatewayDeps, options: GatewayOptions = {}): Promise<Gateway> {
  const resolved = resolveGatewayOptions(options);
  checkBinding(resolved.hostname, resolved.token);
  const { agent, store, host = systemHost, scheduler = sharedScheduler() } = deps;
  const presence = deps.presence ?? (await openProcessPresence({ host }));
  let closing: Promise<void> | undefined;
  const calls = new OpenCalls({ agent, host }, resolved.limits);
  const streams = new EventStreams({ host, scheduler }, resolved.limits);
  const loopDelay = new LoopDelay(scheduler);
  const storeFailures = new StoreFailures({ agent, calls, host }, ({ sessionId, turnId, reason: code, detail }) =>
    server.log.error({ sessionId, turnId, code, detail }, "the store failed"),
  );
  const parts: GatewayParts = {
    agent,
    store,
    host,
    scheduler,
    presence,
    endProcesses: deps.endProcesses,
    calls,
    streams,
    loopDelay,
    storeFailures,
    live: new LiveTurns({ agent, store }),
    handed: new HandedTurns(),
    metrics: new Metrics({ agent, store, host, calls, streams, loopDelay }),
    options: resolved,
    isDraining: () => closing !== undefined,
  };
  const server = createServer(parts, allRoutes(parts));
  const closeOwn = async (): Promise<void> => {
    storeFailures[Symbol.dispose]();
    parts.live[Symbol.dispose]();
    parts.metrics[Symbol.dispose]();
    loopDelay.close();
    if (deps.presence === undefined) await presence.close();
  };
  let url: string;
  try {
    url = await listen(server, resolved.hostname, resolved.port);
  } catch (error) {
    await closeOwn();
    throw error;
  }
  const onError = (error: unknown): void => server.log.warn({ err: error }, "could not look for waiting inputs");
  const waiting = new WaitingInputs({ ...parts, onError }, resolved.limits);
  const kept = new KeptSessions(
    { ...parts, onError: (error) => server.log.warn({ err: error }, "could not forget sessions that nobody uses") },
    resolved.keepMs,
  );
  const drainAndClose = async (): Promise<void> => {
    try {
      await waiting.close();
      await kept.close();
      await drain(parts, server);
    } finally {
      await closeOwn();
    }
  };
  const close = (): Promise<void> => (closing ??= drainAndClose());
  await waiting.look();
  return { url, close, [Symbol.asyncDispose]: close };
}
