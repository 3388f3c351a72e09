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
  /** A checkpoint after so many pages of the WAL; absent: as the store has it. */
  readonly checkpointPages?: number;
  /** `early` acknowledges appends before they are asked for; `normal` never waits for the disk. Neither may pass. */
  readonly mode: "honest" | "early" | "normal";
}

export function sessionIdsOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `session-${index}`);
}
