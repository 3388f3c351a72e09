import type { LanguageModelV3Prompt } from "@ai-sdk/provider";
import { contextBodies } from "./compaction/context-bodies.ts";
import { ContextMeter } from "./compaction/context-meter.ts";
import type { Entry, EntryBody, StateStore, TakenInput } from "@turnkeeper/state-store";
import { GrowingPrompt } from "./prompt.ts";

/**
 * What a model is asked with: the entries that are its context, and beside them the prompt they make, which grows with
 * them. Nothing that a turn does costs more the longer its conversation is, but the request itself.
 */
export class Conversation {
  #modelId: string;
  #bodies: EntryBody[] = [];
  #prompt: GrowingPrompt;
  readonly #meter = new ContextMeter();
  #replacedCount = 0;

  constructor(modelId: string, bodies: Iterable<EntryBody> = []) {
    this.#modelId = modelId;
    this.#prompt = new GrowingPrompt(modelId);
    for (const body of bodies) this.add(body);
  }

  get bodies(): readonly EntryBody[] {
    return this.#bodies;
  }

  /** How often all of it was replaced. */
  get replacedCount(): number {
    return this.#replacedCount;
  }

  add(body: EntryBody): void {
    this.#bodies.push(body);
    this.#prompt.add(body);
  }

  /** About how many tokens a request with it has; `overheadTokens` is what goes beside it, where nobody has counted. */
  usedTokens(overheadTokens: () => number): number {
    return this.#meter.tokensOf(this.#bodies, overheadTokens);
  }

  /** Other entries in place of all there are: what a compaction left. */
  replace(bodies: Iterable<EntryBody>): void {
    this.#replacedCount++;
    this.#bodies = [];
    this.#meter.forget();
    this.#prompt = new GrowingPrompt(this.#modelId);
    for (const body of bodies) this.add(body);
  }

  /** Puts the same entries to another model: what means something to one of them alone is in no other's prompt. */
  addressTo(modelId: string): void {
    if (modelId === this.#modelId) return;
    this.#modelId = modelId;
    this.#prompt = new GrowingPrompt(modelId);
    for (const body of this.#bodies) this.#prompt.add(body);
  }

  prompt(system: string | undefined): LanguageModelV3Prompt {
    return this.#prompt.messages(system);
  }
}

interface Known {
  readonly revision: number;
  readonly conversation: Conversation;
}

const conversationsMax = 64;

/**
 * Conversations as this process last left them: current exactly as long as the store's revision is the one they were
 * left at, so a turn loads its transcript if and only if somebody has changed it since.
 */
export class Conversations {
  readonly #store: StateStore;
  readonly #modelId: string;
  readonly #known = new Map<string, Known>();

  constructor(store: StateStore, modelId: string) {
    this.#store = store;
    this.#modelId = modelId;
  }

  /**
   * The conversation up to and with `input`, the caller's own to grow, and the entries that the input's turn has written
   * already, where another process began it. `revision` is the grant's.
   */
  async upTo(input: TakenInput, revision: number): Promise<{ conversation: Conversation; soFar: readonly Entry[] }> {
    const known = this.#known.get(input.sessionId);
    this.#known.delete(input.sessionId);
    if (known?.revision === revision) {
      known.conversation.addressTo(this.#modelId);
      known.conversation.add({ role: "user", text: input.text, inputId: input.inputId });
      return { conversation: known.conversation, soFar: [] };
    }
    const { sessionId, turnId } = input;
    const { entries } = await this.#store.transcript.load(sessionId);
    const conversation = new Conversation(this.#modelId, contextBodies(entries));
    const isBegun = entries.some((entry) => entry.turnId === turnId && entry.body.role !== "user");
    if (!isBegun) return { conversation, soFar: [] };
    // What a summary stands for counts too.
    const { entries: soFar } = await this.#store.transcript.load(sessionId, { turnId, all: true });
    return { conversation, soFar };
  }

  /** Keeps a conversation for the next turn; it must be exactly what the store has at `revision`. */
  remember(sessionId: string, revision: number, conversation: Conversation): void {
    this.#known.delete(sessionId);
    this.#known.set(sessionId, { revision, conversation });
    const [oldest] = this.#known.keys();
    if (this.#known.size > conversationsMax && oldest !== undefined) this.#known.delete(oldest);
  }
}
