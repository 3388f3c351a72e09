/** What was there before a test: handles by kind, listeners by event. */
export interface Baseline {
  readonly handles: ReadonlyMap<string, number>;
  readonly listeners: ReadonlyMap<string | symbol, number>;
}

export declare function baseline(): Baseline;

/** What is there beyond `before`, once closing has had its time; empty as soon as nothing is. */
export declare function leftovers(before: Baseline): Promise<readonly string[]>;
