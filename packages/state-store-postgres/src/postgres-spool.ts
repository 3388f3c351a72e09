import { CodedError, messageOf } from "@turnkeeper/kernel";
import type { Clock } from "@turnkeeper/kernel";
import type { SpoolStep, SpoolStore, SpoolView, StoreErrorCode } from "@turnkeeper/state-store";
import type { Server } from "./server.ts";
import type { SpoolFolder } from "./spool-folder.ts";
import { SpoolReplay } from "./spool-replay.ts";
import { closedError, codeOf, storeError } from "./store-failure.ts";

const codes: Readonly<Record<string, StoreErrorCode>> = {
  ENOSPC: "STORE_FULL",
  EDQUOT: "STORE_FULL",
  EROFS: "STORE_READONLY",
  EACCES: "STORE_READONLY",
  EPERM: "STORE_READONLY",
  EIO: "STORE_IO",
};

/**
 * The spool of this host. It does not ask the server, since it is for the time when that refuses. What it holds joins
 * its session with the next grant on this host; where another host has run the session meanwhile, it comes late.
 */
export class PostgresSpool implements SpoolStore {
  readonly #folder: SpoolFolder | undefined;
  readonly #clock: Pick<Clock, "wallMs">;
  readonly #server: Pick<Server, "isClosed" | "shown">;

  constructor(
    folder: SpoolFolder | undefined,
    clock: Pick<Clock, "wallMs">,
    server: Pick<Server, "isClosed" | "shown">,
  ) {
    this.#folder = folder;
    this.#clock = clock;
    this.#server = server;
  }

  async keep(step: SpoolStep): Promise<{ readonly place: string }> {
    const folder = this.#folder;
    if (!folder)
      throw storeError(
        "STORE_UNAVAILABLE",
        `Could not keep a step of session ${step.grant.sessionId}: the store ${this.#server.shown} was opened without spoolFolder.`,
      );
    return this.#told("keep a step in", folder, () => ({
      place: folder.keep({ ...step, keptAtMs: this.#clock.wallMs() }),
    }));
  }

  async waiting(sessionId?: string): Promise<readonly SpoolView[]> {
    const folder = this.#folder;
    if (!folder) return [];
    return this.#told("look into", folder, () => {
      const views = new Map<string, SpoolView>();
      for (const { sessionId: id, step } of folder.files(sessionId)) {
        const { stepCount = 0, turnIds = [], damagedCount = 0 } = views.get(id) ?? {};
        views.set(id, {
          sessionId: id,
          stepCount: stepCount + (step ? 1 : 0),
          turnIds: [...new Set([...turnIds, ...(step ? [step.turnId] : [])])].toSorted(),
          damagedCount: damagedCount + (step ? 0 : 1),
          place: folder.path,
        });
      }
      return [...views.values()].toSorted((left, right) => (left.sessionId < right.sessionId ? -1 : 1));
    });
  }

  /** Runs a call that joins the session's steps, and lets go of those it took. */
  async replaying<T>(sessionId: string, act: (replay: SpoolReplay) => Promise<T>): Promise<T> {
    const folder = this.#folder;
    if (!folder) return await act(new SpoolReplay([]));
    const replay = new SpoolReplay(this.#unlessUnread("read", () => folder.files(sessionId)) ?? []);
    const answer = await act(replay);
    this.#unlessUnread("clear", () => replay.absorbed.forEach((file) => folder.letGo(file)));
    return answer;
  }

  /** Removes what waits of a session. */
  forget(sessionId: string): void {
    const folder = this.#folder;
    if (folder) this.#unlessUnread("clear", () => folder.files(sessionId).forEach((file) => folder.letGo(file)));
  }

  /** A spool that cannot be read is said, and refuses nobody the session: what it has comes late then, and is known. */
  #unlessUnread<T>(attempt: string, act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      const said = messageOf(error);
      process.emitWarning(`Could not ${attempt} the spool ${this.#folder?.path}: ${said}`);
      return undefined;
    }
  }

  #told<T>(attempt: string, folder: SpoolFolder, act: () => T): T {
    if (this.#server.isClosed) throw closedError(this.#server.shown);
    try {
      return act();
    } catch (error) {
      if (CodedError.is(error)) throw error;
      const said = messageOf(error);
      throw storeError(
        codes[codeOf(error)] ?? "STORE_UNAVAILABLE",
        `Could not ${attempt} the spool ${folder.path}: ${said}.`,
        { spool: folder.path, systemCode: codeOf(error) },
        error,
      );
    }
  }
}
