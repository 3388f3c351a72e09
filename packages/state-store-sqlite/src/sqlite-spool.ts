import type { Host } from "@turnkeeper/kernel";
import type { SpoolStep, SpoolStore, SpoolView } from "@turnkeeper/state-store";
import type { SpoolFolder } from "./spool-folder.ts";
import { lineOf, stepOf } from "./spool-line.ts";
import { closedError, explain } from "./store-failure.ts";

/** The spool beside a store's file. It asks neither connection nor seal: it is for the time when those refuse. */
export class SqliteSpool implements SpoolStore {
  readonly #folder: SpoolFolder;
  readonly #host: Host;
  readonly #isOpen: () => boolean;

  constructor(folder: SpoolFolder, host: Host, isOpen: () => boolean) {
    this.#folder = folder;
    this.#host = host;
    this.#isOpen = isOpen;
  }

  async keep(step: SpoolStep): Promise<{ readonly place: string }> {
    const { sessionId } = step.grant;
    const keptAtMs = this.#host.clock.wallMs();
    return this.#told(`keep a step of session ${sessionId} in the spool of`, () => ({
      place: this.#folder.keep(sessionId, lineOf({ ...step, keptAtMs })),
    }));
  }

  async waiting(sessionId?: string): Promise<readonly SpoolView[]> {
    return this.#told("look into the spool of", () => {
      const views = new Map<string, SpoolView>();
      for (const file of this.#folder.exists ? this.#folder.files() : []) {
        if (sessionId !== undefined && sessionId !== file.sessionId) continue;
        const known = views.get(file.sessionId);
        const stepCount = file.lines.filter((line) => stepOf(line) !== undefined).length;
        views.set(file.sessionId, {
          sessionId: file.sessionId,
          stepCount: stepCount + (known?.stepCount ?? 0),
          damagedCount: file.lines.length - stepCount + (known?.damagedCount ?? 0),
          place: known ? this.#folder.path : file.path,
        });
      }
      return [...views.values()].toSorted((left, right) => (left.sessionId < right.sessionId ? -1 : 1));
    });
  }

  #told<T>(attempt: string, act: () => T): T {
    if (!this.#isOpen()) throw closedError(this.#folder.path);
    try {
      return act();
    } catch (error) {
      throw explain(error, { attempt, path: this.#folder.path, phase: "body" });
    }
  }
}
