import type { TurnFinished } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import type { CommandIo } from "./command-io.ts";
import type { TurnView } from "./display/turn-view.ts";
import { exitCode } from "./exit-code.ts";
import type { StopSteps } from "./stop-ladder.ts";

/** The stop of a call whose message is not stored yet: nothing was sent, and nothing will run. */
export class EarlyStop implements StopSteps {
  readonly #io: Pick<CommandIo, "exitNow">;
  readonly #view: TurnView;
  readonly #sessionId: string;
  readonly #asked = new AbortController();

  constructor(io: Pick<CommandIo, "exitNow">, view: TurnView, sessionId: string) {
    this.#io = io;
    this.#view = view;
    this.#sessionId = sessionId;
  }

  get signal(): AbortSignal {
    return this.#asked.signal;
  }

  soft(): void {
    this.#asked.abort("user-stop");
  }

  hard(): void {
    this.#io.exitNow(this.tell());
  }

  shutdown(): void {
    this.#asked.abort("shutdown");
  }

  /** What `work` answers; nothing, and at once, where a stop comes first. */
  async unlessAsked<Answer>(work: Promise<Answer>): Promise<Answer | undefined> {
    const { signal } = this.#asked;
    let stop = (): void => {};
    const asked = new Promise<undefined>((resolve) => {
      stop = () => resolve(undefined);
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop, { once: true });
    });
    try {
      return await Promise.race([asked, work]);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Says how the call ended, and answers its exit code. */
  tell(): number {
    const finished: TurnFinished & { readonly sessionId: string; readonly at: string } = {
      type: "turn.finished",
      sessionId: this.#sessionId,
      at: new Date(systemHost.clock.wallMs()).toISOString(),
      outcome: "cancelled",
      reason: String(this.#asked.signal.reason),
      text: "",
      detail: "Stopped before the message was stored; nothing was sent.",
    };
    this.#view.show(finished);
    return exitCode.interrupted;
  }
}
