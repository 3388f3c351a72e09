import type { LanguageModelV3 } from "@ai-sdk/provider";
import type { ModelPrice } from "./model-price.ts";

/** A model that is ready to be called. */
export interface ResolvedModel extends AsyncDisposable {
  /** `provider/model`, as it stands in transcripts and messages. */
  readonly id: string;
  /**
   * The AI SDK model. A call ends with a `finish` part, or rejects (its stream errors) with a `CodedError` whose code is
   * a `ModelErrorCode`; never with an `error` part, never by merely stopping.
   */
  readonly languageModel: LanguageModelV3;
  /**
   * How long one wait for this model may be silent, in milliseconds: the bound of the turn's declared wait. Absent when
   * nobody set one; then the turn's own bound holds.
   */
  readonly silenceMs?: number;
  /**
   * How many tokens one request and its answer may have together. Absent when nobody said; then only the provider's own
   * refusal tells.
   */
  readonly contextWindowTokens?: number;
  /** What its tokens cost. Absent when nobody said. */
  readonly price?: ModelPrice;
  /**
   * The model to ask in this one's place when this one's route fails (`ModelFailure.isOfRoute`) before anything of an
   * answer was seen. It is open, and is closed with this one.
   */
  readonly fallback?: ResolvedModel;
  /** One line the user should see before the first call. */
  readonly note?: string;
  /** Ends running calls with `MODEL_CLOSED` and closes every socket. Safe to repeat; later calls get `MODEL_CLOSED`. */
  close(): Promise<void>;
}
