import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV3 } from "@ai-sdk/provider";
import { systemHost } from "@turnkeeper/kernel";
import { resolveModel } from "@turnkeeper/models";
import type { ResolvedModel } from "@turnkeeper/models";
import { Agent, fetch } from "undici";

const script = fileURLToPath(new URL("processes/stream-server.js", import.meta.url));

/** A model on loopback in a process of its own, and the two ways to ask it. */
export interface ModelServer extends AsyncDisposable {
  /** The SDK's own client, on the same transport as ours. */
  plain(modelId: string): LanguageModelV3;
  resolve(modelId: string): Promise<ResolvedModel>;
}

/** Models are named `COUNTxLENGTH`: the answer has so many deltas of so many characters. */
export async function startModelServer(): Promise<ModelServer> {
  const child = fork(script, ["1"]);
  const [port] = (await once(child, "message")) as [number];
  const baseURL = `http://127.0.0.1:${port}/v1`;
  const dispatcher = new Agent();
  const send = (url: unknown, init: object): Promise<Response> =>
    fetch(url as string, { ...init, dispatcher }) as unknown as Promise<Response>;
  const client = createOpenAICompatible({ name: "bench", baseURL, fetch: send as typeof globalThis.fetch });
  const providers = { "openai-compatible": { baseUrl: baseURL } };
  return {
    plain: (modelId) => client.chatModel(modelId),
    resolve: (modelId) => resolveModel(`openai-compatible/${modelId}`, { host: systemHost, providers }),
    [Symbol.asyncDispose]: async () => {
      await dispatcher.destroy();
      child.disconnect();
    },
  };
}
