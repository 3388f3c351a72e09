/**
 * A server as a process of its own session, spoken to over its stdin and stdout.
 *
 * It does not get the signals of our terminal (a Ctrl-C stops a turn, not its servers), carries a marker of its own, and
 * ends by the kill ladder together with whatever it started.
 */

import { spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { ReadBuffer, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { ProcessMarker } from "@turnkeeper/agent-core";
import type { Host } from "@turnkeeper/kernel";
import { CapturedOutput } from "../captured-output.ts";
import { endProcesses } from "../kill-ladder.ts";

export interface ServerProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly marker: ProcessMarker;
  readonly folder?: string | undefined;
}

// A longer message is no answer for a model; without a bound one without an end would fill the memory.
const messageBytesMax = 16_777_216;
const keptErrorBytes = 2_048;
/** Between the end of its input and TERM: a server that is well written is gone by then. */
const partingMs = 500;
const graceMs = 2_000;

export class ServerProcess implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #host: Host;
  readonly #program: ServerProgram;
  readonly #received = new ReadBuffer({ maxBufferSize: messageBytesMax });
  readonly #errors = new CapturedOutput(keptErrorBytes);
  #child: ChildProcessWithoutNullStreams | undefined;
  #exited: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(host: Host, program: ServerProgram) {
    this.#host = host;
    this.#program = program;
  }

  /** What it last wrote to its standard error, for whoever asks why it does not work. */
  get errorText(): string {
    return this.#errors.text().trim();
  }

  start(): Promise<void> {
    const { command, args, environment, folder } = this.#program;
    return new Promise((resolve, reject) => {
      const child = spawn(command, args, {
        env: environment,
        stdio: ["pipe", "pipe", "pipe"],
        detached: true,
        ...(folder === undefined ? {} : { cwd: folder }),
      });
      this.#child = child;
      this.#exited = new Promise((settled) => {
        child.once("exit", () => settled());
        child.once("error", () => settled());
      });
      child.once("spawn", () => resolve());
      child.once("error", reject);
      child.once("exit", () => void this.close());
      child.stdout.on("data", (chunk: Buffer) => this.#receive(chunk));
      child.stderr.on("data", (chunk: Buffer) => this.#errors.push(chunk));
      // A pipe that breaks belongs to a process that ends: its exit is what counts.
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => undefined);
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (stdin === undefined || !stdin.writable) return Promise.reject(new Error("The server has ended."));
    return new Promise((resolve) => {
      // A server that does not read is found by the call's time limit; nobody waits for it here twice.
      if (stdin.write(serializeMessage(message))) resolve();
      else stdin.once("drain", resolve).once("close", resolve);
    });
  }

  /** Ends the process and what it started; safe to repeat. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    const child = this.#child;
    if (child !== undefined) {
      child.stdout.removeAllListeners("data");
      child.stdin.end();
      await this.#exitedWithin(partingMs);
      const { marker } = this.#program;
      const target = { marker, ...(child.pid === undefined ? {} : { groupId: child.pid }) };
      await endProcesses({ host: this.#host }, target, { graceMs });
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      child.unref();
    }
    this.#received.clear();
    this.onclose?.();
  }

  #exitedWithin(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#host.timers.after(ms, resolve);
      void this.#exited.then(() => {
        cancel();
        return resolve();
      });
    });
  }

  #receive(chunk: Buffer): void {
    try {
      this.#received.append(chunk);
    } catch (error) {
      // More than a message may have: there is no way back into step with it.
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
      void this.close();
      return;
    }
    for (;;) {
      try {
        const message = this.#received.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        // A line that is no message, as servers print that log to the wrong stream: the next one may be.
        this.onerror?.(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }
}
