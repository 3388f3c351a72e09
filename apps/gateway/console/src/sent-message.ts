import type { TurnEvent } from "@turnkeeper/agent-core";
import type { Cancel } from "@turnkeeper/kernel";
import { backOffMs } from "./back-off.ts";
import { readTurnEvents } from "./event-reading.ts";
import type { FollowerDeps } from "./followed-session.ts";
import { sessionPath } from "./gateway-client.ts";
import type { Problem } from "./gateway-json.ts";

export type OnBusy = "wait" | "reject" | "queue" | "steer" | "interrupt";

/** What has become of a message so far. */
export type SentState =
  | { readonly kind: "sending" }
  /** It is in the store. */
  | { readonly kind: "accepted" }
  | { readonly kind: "waiting"; readonly event: Extract<TurnEvent, { type: "turn.waiting" }> }
  | { readonly kind: "running"; readonly turnId: string }
  | { readonly kind: "ended"; readonly event: Extract<TurnEvent, { type: "turn.finished" }> }
  | { readonly kind: "refused"; readonly problem: Problem }
  /** The gateway does not answer; it is sent again, under the same id, which runs once. */
  | { readonly kind: "retrying"; readonly inMs: number };

export interface MessageToSend {
  readonly sessionId: string;
  readonly inputId: string;
  readonly text: string;
  readonly onBusy: OnBusy;
}

/**
 * Sends a message until it is known what became of it: after a lost connection the same message goes out under the same
 * input id, and whoever answers tells its fate. Closing stops listening, not the turn.
 */
export class SentMessage {
  readonly message: MessageToSend;
  readonly #deps: FollowerDeps;
  readonly #changed: (state: SentState, sent: SentMessage) => void;
  #state: SentState = { kind: "sending" };
  #attempt = 0;
  #controller: AbortController | undefined;
  #cancelRetry: Cancel = () => {};
  #isClosed = false;

  constructor(deps: FollowerDeps, message: MessageToSend, changed: (state: SentState, sent: SentMessage) => void) {
    this.#deps = deps;
    this.message = message;
    this.#changed = changed;
    void this.#send();
  }

  get state(): SentState {
    return this.#state;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelRetry();
    this.#controller?.abort();
  }

  /** Sends it once more after a refusal, or at once where the next attempt has a while to go. */
  again(): void {
    if (this.#isClosed || this.#controller || this.#state.kind === "ended") return;
    this.#cancelRetry();
    this.#tell({ kind: "sending" });
    void this.#send();
  }

  #tell(state: SentState): void {
    if (this.#isClosed) return;
    this.#state = state;
    this.#changed(state, this);
  }

  async #send(): Promise<void> {
    const { client, host } = this.#deps;
    const { sessionId, text, inputId, onBusy } = this.message;
    const controller = (this.#controller = new AbortController());
    const answer = await client.open(sessionPath(sessionId, "/turns"), {
      method: "POST",
      body: { input: text, inputId, onBusy, approval: "ask" },
      accept: "text/event-stream",
      signal: controller.signal,
    });
    if (this.#isClosed) return;
    if (answer.kind === "answer") {
      this.#attempt = 0;
      await readTurnEvents(answer.value, { host, controller, onEvent: ({ event }) => this.#take(event) });
    }
    this.#controller = undefined;
    if (this.#isClosed || this.#state.kind === "ended") return;
    // A gateway that drains, or whose store refuses for now, is asked again; every other refusal is a person's business.
    if (answer.kind === "refused" && answer.problem.status !== 503)
      return this.#tell({ kind: "refused", problem: answer.problem });
    const inMs = backOffMs(this.#attempt++, host.random.unit());
    this.#tell({ kind: "retrying", inMs });
    this.#cancelRetry = host.timers.after(inMs, () => void this.#send());
  }

  #take(event: TurnEvent): void {
    if (event.type === "input.accepted") this.#tell({ kind: "accepted" });
    else if (event.type === "turn.waiting") this.#tell({ kind: "waiting", event });
    else if (event.type === "turn.started" && event.turnId !== undefined)
      this.#tell({ kind: "running", turnId: event.turnId });
    else if (event.type === "turn.finished") this.#tell({ kind: "ended", event });
  }
}
