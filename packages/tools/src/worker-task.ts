/**
 * Runs a part of a tool in a worker thread, so that what never yields (a regular expression that backtracks for ever, a
 * loop over hostile input) neither blocks the event loop nor outlives the call.
 *
 * | step | acts | leaves when |
 * | --- | --- | --- |
 * | signal | the turn's signal aborts, or the time is up | at once |
 * | terminate | `worker.terminate()` | the thread has ended, or `terminateMs` is over |
 * | detach | lets go of the thread | at once |
 *
 * A thread inside native code that cannot be interrupted outlives `terminate()`: it is fenced off (nothing it posts is
 * heard from the first step on) and keeps no process alive.
 */

import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import type { Host } from "@turnkeeper/kernel";
import type { StopStep } from "./stop-receipt.ts";

export interface WorkerRequest<Message> {
  /** The module that the worker runs; it finds `input` as its `workerData`. */
  readonly module: URL;
  readonly input: unknown;
  readonly timeoutMs: number;
  /** How long a terminated thread may take to end. */
  readonly terminateMs: number;
  readonly signal: AbortSignal;
  /** Called for each message until the last one. Answers whether it was the last. */
  onMessage(message: Message): boolean;
}

export type WorkerEnd =
  | { readonly kind: "finished" }
  | { readonly kind: "stopped"; readonly by: "timeout" | "interrupt"; readonly steps: readonly StopStep[] }
  /** It threw, ran out of memory, or ended without its last message. */
  | { readonly kind: "failed"; readonly error: unknown };

// Enough for the tools here by far; a worker beyond it fails alone, where the process would have died.
const heapMegabytesMax = 512;

export async function runWorker<Message>(
  { host }: { readonly host: Host },
  request: WorkerRequest<Message>,
): Promise<WorkerEnd> {
  const worker = startWorker(request);
  const disposers: (() => void)[] = [];
  const end = await new Promise<WorkerEnd["kind"] | "timeout" | "interrupt" | { readonly error: unknown }>(
    (resolve) => {
      worker.on("message", (message: Message) => {
        if (request.onMessage(message)) resolve("finished");
      });
      worker.on("error", (error) => resolve({ error }));
      worker.on("messageerror", (error) => resolve({ error }));
      worker.on("exit", (code) => resolve({ error: new Error(`The worker ended with code ${code} and no answer.`) }));
      const interrupt = (): void => resolve("interrupt");
      request.signal.addEventListener("abort", interrupt);
      disposers.push(
        () => request.signal.removeEventListener("abort", interrupt),
        host.timers.after(request.timeoutMs, () => resolve("timeout")),
      );
      if (request.signal.aborted) interrupt();
    },
  );
  for (const dispose of disposers) dispose();
  const steps = await endWorker(host, worker, request.terminateMs);
  if (typeof end === "object") return { kind: "failed", error: end.error };
  return end === "timeout" || end === "interrupt" ? { kind: "stopped", by: end, steps } : { kind: "finished" };
}

function startWorker({ module, input }: WorkerRequest<never>): Worker {
  const isSource = module.pathname.endsWith(".ts");
  return new Worker(isSource ? sourceLoader(module) : module, {
    workerData: input,
    execArgv: isSource ? ["--conditions=@turnkeeper/source"] : [],
    // Secrets of the environment are nobody's business there.
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: heapMegabytesMax },
  });
}

/** Where the tests of this repository load this package from its source, the worker must be able to as well. */
function sourceLoader(module: URL): URL {
  const { resolve } = createRequire(import.meta.url);
  const api = pathToFileURL(path.join(path.dirname(resolve("tsx/package.json")), "dist/esm/api/index.mjs"));
  const code = `import { register } from "${api.href}"; register(); await import("${module.href}");`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}

/** Ends the thread, or lets go of it. */
async function endWorker(host: Host, worker: Worker, terminateMs: number): Promise<readonly StopStep[]> {
  // One that has ended by itself says "exit" no more.
  if (worker.threadId === -1) return [{ step: "terminate", ended: true }];
  worker.removeAllListeners();
  // A worker that fails while it is ended has nobody to tell; without a listener it would end this process.
  worker.on("error", () => undefined);
  const ended = await new Promise<boolean>((resolve) => {
    const cancel = host.timers.after(terminateMs, () => resolve(false));
    worker.once("exit", () => {
      cancel();
      resolve(true);
    });
    void worker.terminate();
  });
  if (ended) return [{ step: "terminate", ended }];
  worker.unref();
  return [
    { step: "terminate", ended },
    { step: "detach", processIds: [] },
  ];
}
