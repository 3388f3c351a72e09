import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { SpoolStep, SpoolStore, SpoolView, StoreErrorCode } from "@turnkeeper/state-store";
import type { SpoolFolder } from "./spool-folder.ts";
import { lineOf, stepOf } from "./spool-line.ts";
import { closedError, explain, storeError } from "./store-failure.ts";

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
    const line = lineOf({ ...step, keptAtMs: this.#host.clock.wallMs() });
    return this.#told(
      `keep a step of session ${sessionId} in`,
      () => ({ place: this.#folder.keep(sessionId, line) }),
      (error) => lostError(error, step, Buffer.byteLength(line)),
    );
  }

  async waiting(sessionId?: string): Promise<readonly SpoolView[]> {
    return this.#told("look into", () => {
      const views = new Map<string, SpoolView>();
      for (const file of this.#folder.exists ? this.#folder.files() : []) {
        if (sessionId !== undefined && sessionId !== file.sessionId) continue;
        const known = views.get(file.sessionId);
        const steps = file.lines.map((line) => stepOf(line)).filter((step) => step !== undefined);
        const stepCount = steps.length;
        views.set(file.sessionId, {
          sessionId: file.sessionId,
          stepCount: stepCount + (known?.stepCount ?? 0),
          turnIds: [...new Set([...(known?.turnIds ?? []), ...steps.map(({ turnId }) => turnId)])].toSorted(),
          damagedCount: file.lines.length - stepCount + (known?.damagedCount ?? 0),
          place: known ? this.#folder.path : file.path,
        });
      }
      return [...views.values()].toSorted((left, right) => (left.sessionId < right.sessionId ? -1 : 1));
    });
  }

  #told<T>(attempt: string, act: () => T, told = (error: unknown): unknown => error): T {
    if (!this.#isOpen()) throw closedError(this.#folder.path);
    try {
      return act();
    } catch (error) {
      throw told(
        explain(error, { attempt: `${attempt} the spool of`, path: this.#folder.databasePath, phase: "open" }),
      );
    }
  }
}

/** Says what is nowhere now: the store refused it, and the spool has no room for it. */
function lostError(error: unknown, { grant, turnId, entries, end }: SpoolStep, byteCount: number): unknown {
  if (!CodedError.is<StoreErrorCode>(error)) return error;
  const keys = entries.map(({ key }) => key);
  const what = [...(keys.length > 0 ? [`entries ${keys.join(", ")}`] : []), ...(end ? ["its end"] : [])].join(" and ");
  return storeError(
    error.code,
    `${error.message} In no place are now, of turn ${turnId} (${byteCount} bytes): ${what}.`,
    { ...error.context, sessionId: grant.sessionId, turnId, entryKeys: keys, byteCount },
    error.cause,
  );
}
