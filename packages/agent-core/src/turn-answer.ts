import type { AssistantBody, EntryBody } from "@turnkeeper/state-store";
import type { ModelStep } from "./model-call.ts";
import { answerTextOf } from "./stored-end.ts";

/** How often in a row a model is asked for the rest of what it began. */
const goOnMax = 4;

/** What a turn has answered: its last answer, with the cut pieces directly before it that it goes on from. */
export class TurnAnswer {
  #pieces: readonly AssistantBody[];
  #goOnCount = 0;

  /** Begins with what the turn said before it was suspended, oldest first. */
  constructor(said: readonly AssistantBody[]) {
    this.#pieces = said;
  }

  get text(): string {
    return answerTextOf(this.#pieces.map((body) => ({ body })));
  }

  /** How often in a row more was asked for. */
  get goOnCount(): number {
    return this.#goOnCount;
  }

  /** Takes an answer in; `before` is the entry that it follows. */
  add(body: AssistantBody, before: EntryBody | undefined): void {
    const goesOn = this.#pieces.length > 0 && before?.role === "assistant" && before.partial === true;
    this.#pieces = goesOn ? [...this.#pieces, body] : [body];
  }

  /** Whether the rest of a cut answer may be asked for: words of it came, no call did, and it was not too often. */
  mayGoOn({ reader }: ModelStep): boolean {
    return this.#goOnCount < goOnMax && reader.calls.length === 0 && reader.text().trim() !== "";
  }

  /** Whether the model is to say what it makes of a tool that its provider ran: it has not yet. */
  mustGoOn({ reader }: ModelStep): boolean {
    return this.#goOnCount < goOnMax && reader.endsInProviderTool;
  }

  goOn(): void {
    this.#goOnCount++;
  }

  /** What was begun has come to its end. */
  isWhole(): void {
    this.#goOnCount = 0;
  }
}
