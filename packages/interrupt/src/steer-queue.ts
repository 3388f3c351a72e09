/** Steers on their way into a model request. They stay queued until `deliver` says that they went in. */
export interface SteerBatch {
  /** In the order they came. */
  readonly texts: readonly string[];
  /** All of them, one after the other, joined by newlines. */
  readonly text: string;
  /**
   * Call it in the same synchronous step that puts the text into the request. True once: they count as delivered.
   * False: leave them out; a hard stop, the end of the turn or a later batch came first, and they are told elsewhere.
   */
  deliver(): boolean;
}

/** Live text for a running turn: each is delivered once or returned as undelivered, never both, never neither. */
export interface SteerQueue {
  add(text: string): void;
  take(): SteerBatch | undefined;
  /** Nothing is delivered any more; what is queued stays, to be returned by `end`. */
  close(): void;
  /** Returns what was never delivered, once. */
  end(): readonly string[];
}

export function createSteerQueue(): SteerQueue {
  let queued: string[] = [];
  let batchNumber = 0;
  let isClosed = false;
  const take = (): SteerBatch | undefined => {
    if (isClosed || queued.length === 0) return undefined;
    const texts = Object.freeze([...queued]);
    const number = ++batchNumber;
    const deliver = (): boolean => {
      // A later batch holds these texts too: only the newest may deliver them.
      if (isClosed || number !== batchNumber) return false;
      batchNumber++;
      queued = queued.slice(texts.length);
      return true;
    };
    return { texts, text: texts.join("\n"), deliver };
  };
  return {
    add: (text) => void queued.push(text),
    take,
    close: () => void (isClosed = true),
    end: () => {
      isClosed = true;
      const undelivered = queued;
      queued = [];
      return undelivered;
    },
  };
}
