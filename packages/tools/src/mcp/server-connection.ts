/**
 * One server: started when it is needed, started again when it died, never waited for without a bound.
 *
 * | state | event | next |
 * | --- | --- | --- |
 * | down | a call, after the pause | connecting |
 * | down | a call, within the pause | down: the call fails at once and says until when |
 * | connecting | it names itself in time | up |
 * | connecting | it does not, or ends | down, the pause doubled |
 * | up | it ends, or answers neither a call nor a ping in time | down, the pause doubled |
 * | up | a call is answered | up, the pause short again |
 * | any | close | closed |
 */

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { childEnvironment } from "../child-environment.ts";
import type { Environment } from "../child-environment.ts";
import { toolError } from "../errors.ts";
import { BoundedWait } from "./bounded-wait.ts";
import type { WaitReasons } from "./bounded-wait.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import { OfferedTools, toolPageSchema } from "./offered-tools.ts";
import { failureText, isConnectionClosed, saidText } from "./server-failure.ts";
import { ServerProcess } from "./server-process.ts";
import type { ResolvedMcpServerOptions } from "./server-options.ts";

export interface ConnectionDeps {
  readonly host: Host;
  readonly environment: Environment;
}

export interface ServerCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly onProgress: () => void;
}

type State =
  | { readonly kind: "down"; readonly retryAtMs: number; readonly reason: string }
  | { readonly kind: "connecting"; readonly client: Promise<Client> }
  | { readonly kind: "up"; readonly client: Client }
  | { readonly kind: "closed" };

/** Names the server's processes, so that ending it finds them all; a server outlives the turn that starts it. */
const serverMarkerName = "TURNKEEPER_MCP_SERVER";
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;
const pingTimeoutMs = 5_000;
const toolPagesMax = 20;
// Our own limits rule; the SDK's timer is put out of the way.
const noTimeoutMs = 2 ** 31 - 1;

export class ServerConnection {
  readonly name: string;
  readonly #deps: ConnectionDeps;
  readonly #options: ResolvedMcpServerOptions;
  #state: State = { kind: "down", retryAtMs: Number.NEGATIVE_INFINITY, reason: "" };
  #failureCount = 0;
  readonly #transports = new Set<Transport>();

  constructor(deps: ConnectionDeps, name: string, options: ResolvedMcpServerOptions) {
    this.#deps = deps;
    this.name = name;
    this.#options = options;
  }

  /** Starts the server. A stop ends the wait, and leaves it to the caller to close what has started. */
  async listTools(stop?: AbortSignal): Promise<OfferedTools> {
    const { startTimeoutMs } = this.#options;
    using wait = new BoundedWait(this.#deps.host, startTimeoutMs, this.#startReasons(), stop);
    const client = await wait.of(this.#connected());
    const offered = new OfferedTools();
    let cursor: string | undefined;
    for (let page = 0; page < toolPagesMax; page++) {
      const request = { method: "tools/list" as const, params: cursor === undefined ? {} : { cursor } };
      const answer = await wait.of(
        client.request(request, toolPageSchema, { signal: wait.signal, timeout: noTimeoutMs }),
      );
      offered.add(answer.tools);
      cursor = answer.nextCursor;
      if (cursor === undefined) break;
    }
    return offered;
  }

  /** Rejects with `MCP_UNAVAILABLE` where nothing was sent, else with `MCP_FAILED` or `CALL_INTERRUPTED`. */
  async call({ name, input, signal, onProgress }: ServerCall): Promise<CallToolResult> {
    const { callTimeoutMs } = this.#options;
    using wait = new BoundedWait(
      this.#deps.host,
      callTimeoutMs,
      this.#callReasons(`answer ${name}`, callTimeoutMs),
      signal,
    );
    const client = await wait.of(this.#connected());
    try {
      const result = await wait.of(
        client.request({ method: "tools/call", params: { name, arguments: input } }, CallToolResultSchema, {
          signal: wait.signal,
          timeout: noTimeoutMs,
          onprogress: () => {
            wait.pushBack();
            onProgress();
          },
        }),
      );
      this.#failureCount = 0;
      return result;
    } catch (error) {
      if (wait.signal.aborted && !signal.aborted) void this.#endUnlessAlive(client);
      // The SDK, which hears the signal too, puts words of its own around the reason.
      if (wait.signal.aborted) throw wait.signal.reason;
      if (CodedError.is(error)) throw error;
      const failed = `The MCP server ${JSON.stringify(this.name)} failed at ${name}:`;
      const state = this.#state;
      const hasEnded = isConnectionClosed(error) && state.kind === "down";
      const reason = hasEnded ? `${state.reason} The call may have had its effect.` : saidText(error);
      throw toolError("MCP_FAILED", `${failed} ${reason}`, error);
    }
  }

  /** Ends the server; safe to repeat. */
  async close(): Promise<void> {
    this.#state = { kind: "closed" };
    await Promise.all([...this.#transports].map((transport) => transport.close()));
  }

  #connected(): Promise<Client> {
    const state = this.#state;
    switch (state.kind) {
      case "up":
        return Promise.resolve(state.client);
      case "connecting":
        return state.client;
      case "closed":
        return Promise.reject(toolError("MCP_UNAVAILABLE", `The MCP server ${JSON.stringify(this.name)} is closed.`));
      case "down": {
        const restMs = state.retryAtMs - this.#deps.host.clock.monotonicMs();
        if (restMs > 0) {
          const seconds = Math.ceil(restMs / 1_000);
          const message = `The MCP server ${JSON.stringify(this.name)} is down: ${state.reason} It may be tried again in ${seconds} s.`;
          return Promise.reject(toolError("MCP_UNAVAILABLE", message));
        }
        const client = this.#connect();
        this.#state = { kind: "connecting", client };
        return client;
      }
    }
  }

  async #connect(): Promise<Client> {
    const { startTimeoutMs } = this.#options;
    const transport = this.#transport();
    this.#transports.add(transport);
    const client = new Client({ name: "turnkeeper", version: "1" }, { capabilities: {} });
    // What it complains of out of turn is in its own log; what matters comes as the failure of a call.
    client.onerror = () => undefined;
    try {
      using wait = new BoundedWait(this.#deps.host, startTimeoutMs, this.#startReasons());
      await wait.of(client.connect(transport, { signal: wait.signal, timeout: noTimeoutMs }));
    } catch (error) {
      await transport.close();
      this.#transports.delete(transport);
      throw this.#wentDown(error, transport);
    }
    client.onclose = () => {
      this.#transports.delete(transport);
      if (this.#state.kind === "up" && this.#state.client === client) this.#wentDown("It ended.", transport);
    };
    if (this.#state.kind === "closed") {
      await transport.close();
      throw toolError("MCP_UNAVAILABLE", `The MCP server ${JSON.stringify(this.name)} is closed.`);
    }
    this.#state = { kind: "up", client };
    return client;
  }

  #wentDown(cause: unknown, transport: Transport): CodedError {
    const said = transport instanceof ServerProcess ? transport.errorText : "";
    const reason = failureText(cause, said, this.#options);
    this.#failureCount += 1;
    const pauseMs = Math.min(firstPauseMs * 2 ** (this.#failureCount - 1), longestPauseMs);
    if (this.#state.kind !== "closed") {
      this.#state = { kind: "down", retryAtMs: this.#deps.host.clock.monotonicMs() + pauseMs, reason };
    }
    const message = `The MCP server ${JSON.stringify(this.name)} cannot be used: ${reason}`;
    return toolError("MCP_UNAVAILABLE", message, cause instanceof Error ? cause : undefined);
  }

  /** A call went unanswered: a server that is busy with it answers a ping, one that hangs is ended. */
  async #endUnlessAlive(client: Client): Promise<void> {
    try {
      using wait = new BoundedWait(this.#deps.host, pingTimeoutMs, this.#callReasons("answer a ping", pingTimeoutMs));
      await wait.of(client.ping({ signal: wait.signal, timeout: noTimeoutMs }));
    } catch {
      await client.close();
    }
  }

  #transport(): Transport {
    const { command, args, env, passEnvironment, folder, url, headers } = this.#options;
    if (command !== undefined) {
      const { host, environment } = this.#deps;
      const marker = { [serverMarkerName]: host.random.id() };
      return new ServerProcess(host, {
        command,
        args,
        folder,
        marker,
        environment: { ...childEnvironment(environment, passEnvironment, {}), ...env, ...marker },
      });
    }
    const transport = new StreamableHTTPClientTransport(new URL(url ?? ""), {
      fetch: boundedFetch,
      requestInit: { headers },
    });
    // The SDK's class has an optional property where its interface has one that may be undefined.
    return transport as Transport;
  }

  #startReasons(): WaitReasons {
    const shown = JSON.stringify(this.name);
    const seconds = this.#options.startTimeoutMs / 1_000;
    return {
      timeout: () =>
        toolError("MCP_UNAVAILABLE", `The MCP server ${shown} did not start and name its tools within ${seconds} s.`),
      interrupt: () => toolError("CALL_INTERRUPTED", `The MCP server ${shown} was stopped before it had started.`),
    };
  }

  #callReasons(attempt: string, ms: number): WaitReasons {
    const shown = JSON.stringify(this.name);
    return {
      timeout: () =>
        toolError(
          "MCP_FAILED",
          `The MCP server ${shown} did not ${attempt} within ${ms / 1_000} s; it may have had its effect.`,
        ),
      interrupt: () => toolError("CALL_INTERRUPTED", `The turn was stopped while the MCP server ${shown} worked.`),
    };
  }
}
