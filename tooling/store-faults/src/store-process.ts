import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import type { Told } from "./acknowledgement.ts";
import type { Workload } from "./workload.ts";

/** What a process told before it died may end in the middle of a line. */
function parsed(line: string): Told | undefined {
  return line.endsWith("}") ? (JSON.parse(line) as Told) : undefined;
}

/** A process that works on a store, and all that it told. */
export class StoreProcess {
  readonly workload: Workload;
  readonly told: Told[] = [];
  /** Settles when it has ended and everything it told has been read. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  readonly #child: ChildProcess;
  #stderr = "";
  #isReady = false;
  #hasEnded = false;

  /** `tracer`: a command that starts the process itself, given its command line. */
  constructor(script: string, workload: Workload, tracer: readonly string[] = []) {
    this.workload = workload;
    const [command, ...args] = [...tracer, process.execPath, script, JSON.stringify(workload)];
    // A group of its own: a tracer that is killed leaves the traced alone.
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    this.#child = child;
    child.stderr.on("data", (chunk: Buffer) => void (this.#stderr += chunk.toString()));
    createInterface({ input: child.stdout }).on("line", (line) => this.#read(line));
    this.ended = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) => {
        this.#hasEnded = true;
        resolve({ code, signal });
      });
    });
  }

  get isReady(): boolean {
    return this.#isReady && !this.#hasEnded;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get stderr(): string {
    return this.#stderr.trim();
  }

  kill(): void {
    if (this.#child.pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    process.kill(-this.#child.pid, "SIGKILL");
  }

  #read(line: string): void {
    const told = parsed(line);
    if (!told) return;
    this.told.push(told);
    if (told.told === "ready") this.#isReady = true;
  }
}

/** Kept apart from the acknowledgements of the store. */
export function isReport(told: Told): told is Extract<Told, { told: "ready" | "done" | "refused" | "failed" }> {
  return ["ready", "done", "refused", "failed"].includes(told.told);
}
