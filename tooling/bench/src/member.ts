import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ContenderSettings } from "./contention.ts";
import type { ContenderAnswer, ContenderCommand } from "./processes/contender.ts";
import { nowNs } from "./stopwatch.ts";

const script = fileURLToPath(new URL("processes/contender.js", import.meta.url));

/** A process that competes, as its parent knows it. */
export class Member {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#exit = once(child, "exit");
  }

  static async start(settings: ContenderSettings): Promise<Member> {
    const member = new Member(fork(script, [JSON.stringify(settings)]));
    await member.#answer("ready");
    return member;
  }

  /** Answers when it returned; see `ContenderAnswer`. */
  async acquire(isFree: boolean): Promise<number> {
    return await this.#ask({ act: "acquire", isFree });
  }

  async release(): Promise<number> {
    return await this.#ask({ act: "release" });
  }

  /** Ends it as a crash does, and answers when the signal was sent. */
  async kill(): Promise<number> {
    const sentNs = nowNs();
    this.#child.kill("SIGKILL");
    await this.#exit;
    return sentNs;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    await this.#ask({ act: "close" });
    await this.#exit;
  }

  async #ask(command: ContenderCommand): Promise<number> {
    const answer = this.#answer(command.act);
    this.#child.send(command);
    return await answer;
  }

  #answer(act: ContenderAnswer["act"]): Promise<number> {
    return new Promise((resolve, reject) => {
      const hear = (message: unknown): void => {
        const answer = message as ContenderAnswer;
        if (answer.act === act) settle(() => resolve(answer.atNs));
      };
      const end = (): void => settle(() => reject(new Error(`A contender ended while it was to ${act}.`)));
      const settle = (conclude: () => void): void => {
        this.#child.off("message", hear).off("exit", end);
        conclude();
      };
      this.#child.on("message", hear).on("exit", end);
    });
  }
}
