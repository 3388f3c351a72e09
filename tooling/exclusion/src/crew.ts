import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Mode } from "./bounds.ts";
import type { Ground } from "./ground.ts";
import { nowNs } from "./history.ts";
import type { SignalSent } from "./history.ts";

const packageFolder = fileURLToPath(new URL("..", import.meta.url));
const script = fileURLToPath(new URL("worker.ts", import.meta.url));

/** A process of the crew, as its parent knows it. */
export class Member {
  readonly name: string;
  readonly child: ChildProcess;
  readonly exit: Promise<unknown>;
  stderr = "";
  /** It competes. */
  isReady = false;
  isStopped = false;
  isKilled = false;

  constructor(name: string, child: ChildProcess) {
    this.name = name;
    this.child = child;
    this.exit = once(child, "exit");
    child.stdout?.once("data", () => (this.isReady = true));
    child.stderr?.on("data", (chunk: Buffer) => void (this.stderr += chunk.toString()));
  }

  get hasExited(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** How it ended, where that is not how it should have; a killed one ends as it may. */
  get misbehaviour(): string | undefined {
    if (this.isKilled || (this.hasExited && this.child.exitCode === 0)) return undefined;
    const how = this.hasExited ? `ended with ${this.child.signalCode ?? this.child.exitCode}` : "did not end";
    return `process ${this.name} ${how}: ${this.stderr.trim().slice(0, 2_000)}`;
  }
}

/** The processes that compete, the signals they were sent, and their end: whatever this started, it ends. */
export class Crew {
  readonly members: Member[] = [];
  readonly signals: SignalSent[] = [];
  readonly #folder: string;
  readonly #mode: Mode;
  readonly #ground: Pick<Ground, "placeOf">;

  constructor(folder: string, mode: Mode, ground: Pick<Ground, "placeOf">) {
    this.#folder = folder;
    this.#mode = mode;
    this.#ground = ground;
  }

  start(): Member {
    const name = `w${this.members.length + 1}`;
    const place = JSON.stringify(this.#ground.placeOf(this.members.length));
    const args = ["--import", "tsx", "--conditions=@turnkeeper/source", script, this.#folder, name, this.#mode, place];
    // Its stdin ends with us at the latest, and with that the process.
    const child = spawn(process.execPath, args, { cwd: packageFolder, stdio: "pipe" });
    child.stdin.on("error", () => {});
    const member = new Member(name, child);
    this.members.push(member);
    return member;
  }

  get living(): readonly Member[] {
    return this.members.filter((member) => !member.isKilled && !member.hasExited);
  }

  send(member: Member, signal: SignalSent["signal"]): void {
    if (member.isKilled || member.hasExited) return;
    if (signal === "SIGKILL") member.isKilled = true;
    else member.isStopped = signal === "SIGSTOP";
    const beforeNs = nowNs();
    member.child.kill(signal);
    this.signals.push({ worker: member.name, signal, beforeNs, afterNs: nowNs() });
  }

  /** Tells every process that nothing more is wanted, and waits for their ends; answers whether all came in time. */
  async settle(timeMs: number): Promise<boolean> {
    for (const member of this.living) {
      if (member.isStopped) this.send(member, "SIGCONT");
      member.child.stdin?.end();
    }
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), timeMs);
    const late = once(deadline.signal, "abort").then(() => false);
    const ends = Promise.all(this.members.map((member) => member.exit)).then(() => true);
    const isInTime = await Promise.race([ends, late]);
    clearTimeout(timer);
    return isInTime;
  }

  /** Kills whoever is left, and waits until the kernel has their ends. */
  async close(): Promise<void> {
    for (const { child } of this.members)
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await Promise.all(this.members.map((member) => member.exit));
  }
}
