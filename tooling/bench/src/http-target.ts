import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import type { IncomingMessage } from "node:http";
import { fileURLToPath } from "node:url";

export type HttpServerKind = "node:http" | "fastify" | "gateway";

export const httpToken = "of-the-bench";

export type HttpCommand = { readonly act: "usage" } | { readonly act: "stream"; readonly eventCount: number };

export type HttpAnswer =
  | { readonly act: "ready"; readonly port: number }
  | { readonly act: "stream" }
  | { readonly act: "usage"; readonly cpuUs: number; readonly rssBytes: number; readonly heapBytes: number };

export type HttpUsage = Extract<HttpAnswer, { readonly act: "usage" }>;

const script = fileURLToPath(new URL("processes/http-server.js", import.meta.url));
const headers = { authorization: `Bearer ${httpToken}` };

/** A stream that is open: how many events have come on it. */
export interface OpenEvents {
  readonly eventCount: () => number;
  close(): void;
}

/** A server in a process of its own, as its clients know it. */
export class HttpTarget {
  readonly #child: ChildProcess;
  readonly url: string;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(kind: HttpServerKind, ...rest: readonly string[]): Promise<HttpTarget> {
    const child = fork(script, [kind, ...rest], { execArgv: ["--expose-gc"] });
    const [ready] = (await once(child, "message")) as [HttpAnswer];
    if (ready.act !== "ready") throw new Error(`The server ${kind} did not begin.`);
    return new HttpTarget(child, ready.port);
  }

  async #ask(command: HttpCommand): Promise<HttpAnswer> {
    const answer = once(this.#child, "message") as Promise<[HttpAnswer]>;
    this.#child.send(command);
    const [told] = await answer;
    return told;
  }

  async usage(): Promise<HttpUsage> {
    const told = await this.#ask({ act: "usage" });
    if (told.act !== "usage") throw new Error(`Asked for its usage, the server answered ${told.act}.`);
    return told;
  }

  async stream(eventCount: number): Promise<void> {
    await this.#ask({ act: "stream", eventCount });
  }

  /** Opens a stream of events, and answers once its head has come. */
  async openEvents(): Promise<OpenEvents> {
    const sent = request(`${this.url}/v1/sessions/s/events`, { headers, agent: false }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    if (response.statusCode !== 200) throw new Error(`A stream was refused: ${response.statusCode}.`);
    let count = 0;
    let rest = "";
    response.setEncoding("utf8").on("data", (text: string) => {
      const blocks = (rest + text).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) if (block.includes("data: ")) count++;
    });
    response.on("error", () => {});
    return { eventCount: () => count, close: () => sent.destroy() };
  }

  close(): Promise<void> {
    this.#child.disconnect();
    return Promise.resolve();
  }
}
