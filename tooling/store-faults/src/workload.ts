/** What one store process does. */
export interface Workload {
  readonly path: string;
  /** Unique among all processes that ever worked on this store. */
  readonly name: string;
  readonly seed: number;
  readonly sessionCount: number;
  /** How many turns run at the same time. */
  readonly laneCount: number;
  /** How many turns each lane runs in one life; 0: until the process is killed. */
  readonly turnCount: number;
  /** How often the store is opened, worked on and closed. */
  readonly lifeCount: number;
  /**
   * How many turns the last life runs behind those of its lanes, one after the other, that go to the spool from their
   * first step and bring it back with their release; absent: none. How much lanes spool is up to chance.
   */
  readonly spooledTurnCount?: number;
  /** A checkpoint after so many pages of the WAL; absent: as the store has it. */
  readonly checkpointPages?: number;
  /** `early` acknowledges appends before they are asked for; `normal` never waits for the disk. Neither may pass. */
  readonly mode: "honest" | "early" | "normal";
}

export function sessionIdsOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `session-${index}`);
}
