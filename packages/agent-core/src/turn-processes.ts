import { CodedError, messageOf } from "@turnkeeper/kernel";
import type { Predecessor } from "@turnkeeper/state-store";
import { reportDefect } from "./defect.ts";
import { processMarkerOf } from "./process-marker.ts";
import type { EndProcesses, ProcessMarker } from "./process-marker.ts";

/**
 * The processes of one turn, and those that the turns before it left on this host (rule 7.14). What could not be ended is
 * told to whoever has the session next.
 */
export class TurnProcesses {
  readonly #end: EndProcesses | undefined;
  readonly #turnId: string;
  readonly #predecessors: readonly Predecessor[];
  #mayHaveOwn = false;
  #areEarlierLeft: boolean;
  #areOwnLeft = false;

  constructor(end: EndProcesses | undefined, turnId: string, predecessors: readonly Predecessor[] = []) {
    this.#end = end;
    this.#turnId = turnId;
    this.#predecessors = predecessors;
    this.#areEarlierLeft = end !== undefined && predecessors.length > 0;
  }

  /** Whether any may still run. */
  get areLeft(): boolean {
    return this.#areEarlierLeft || this.#areOwnLeft;
  }

  /** The variables that every process of the turn must carry. */
  mark(): ProcessMarker {
    this.#mayHaveOwn = true;
    return processMarkerOf(this.#turnId);
  }

  /** Before the turn's first side effect. Throws `PROCESSES_LEFT`. */
  async endEarlier(): Promise<void> {
    for (const { turnId } of this.#predecessors) {
      try {
        await this.#end?.(processMarkerOf(turnId));
      } catch (error) {
        const why = messageOf(error);
        const message = `What turn ${turnId} left running on this host could not be ended, so nothing was started beside it (${why}). Send again; where that fails too, end those processes by hand.`;
        throw new CodedError("PROCESSES_LEFT", message, { cause: error, context: { turnId } });
      }
    }
    this.#areEarlierLeft = false;
  }

  /** What a tool left in the background ends with its turn, while the turn still holds the session. Never rejects. */
  async endOwn(): Promise<void> {
    if (!this.#mayHaveOwn) return;
    this.#areOwnLeft = true;
    try {
      await this.#end?.(processMarkerOf(this.#turnId));
      this.#areOwnLeft = false;
    } catch (error) {
      reportDefect(error);
    }
  }
}
