import { once } from "node:events";
import { connect } from "node:net";
import { createAgent } from "@turnkeeper/agent-core";
import type { Agent, AgentDeps } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import type { ScriptedStep } from "@turnkeeper/agent-core/testing";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore } from "@turnkeeper/state-store";
import { afterEach } from "vitest";
import { startGateway } from "../../src/index.ts";
import type { Gateway, GatewayOptions } from "../../src/index.ts";

export interface OpenedGateway {
  readonly url: string;
  readonly store: MemoryStore;
  readonly agent: Agent;
  readonly gateway: Gateway;
}

const opened: { readonly gateway?: Gateway; readonly agent: Agent }[] = [];

/** A gateway on a free port, with an agent whose model says what the test says; closed after the test. */
export async function openGateway(
  steps: readonly ScriptedStep[],
  options: GatewayOptions = {},
  deps: Partial<AgentDeps> & { readonly store?: MemoryStore } = {},
): Promise<OpenedGateway> {
  const store = deps.store ?? createMemoryStore({ host: systemHost });
  const agent = await createAgent({ model: scriptedModel(steps), ...deps, store });
  opened.push({ agent });
  const gateway = await startGateway({ agent, store }, { port: 0, drainMs: 0, ...options });
  opened.push({ agent, gateway });
  return { url: gateway.url, store, agent, gateway };
}

afterEach(async () => {
  for (const { gateway, agent } of opened.splice(0).toReversed()) {
    const closed = gateway?.close();
    // What a test left running is not waited for.
    await agent.close();
    await closed;
  }
});

export const post = (url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

/** Sends raw bytes: what no HTTP client would send. */
export async function rawRequest(url: string, head: string, body = ""): Promise<string> {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.setEncoding("utf8");
  let answer = "";
  socket.on("data", (chunk: string) => (answer += chunk));
  socket.write(`${head}\r\nConnection: close\r\n\r\n${body}`);
  await once(socket, "close");
  return answer;
}

/** Waits for what the store will say, turn of the event loop by turn. */
export async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setImmediate(resolve));
}
