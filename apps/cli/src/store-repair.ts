/** What `sessions repair` does, one thing after another: each is what the next turn would do, or derived from rows. */
import { chmod, readdir, stat } from "node:fs/promises";
import path from "node:path";
import { pulseOf, reapTurns } from "@turnkeeper/agent-core";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import type { Grant, LeaseView, OpenTurn, SpoolView, StateStore, StoreErrorCode } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { counted } from "./display/count-text.ts";
import { endLeftProcesses } from "./left-processes.ts";
import { oneLine } from "./one-line.ts";
import { inspectCommand, repairCommand, verifyCommand } from "./printed-command.ts";
import { shellWord } from "./shell-word.ts";
import { leftLease, sessionIds, verifyStore } from "./store-verification.ts";

export interface RepairDeps {
  readonly store: StateStore;
  readonly presence: ProcessPresence;
  /** The store's file, if it is in one. */
  readonly path?: string;
  /** How the store is named in a command. */
  readonly shown: string;
}

export interface Mended {
  readonly session?: string;
  readonly detail: string;
}

/** What could not be mended. `isHeld`: a live holder is in the way. */
export interface NotMended extends Mended {
  readonly next: string;
  readonly isHeld?: boolean;
}

export interface RepairReport {
  readonly mends: readonly Mended[];
  readonly left: readonly NotMended[];
}

/** How long the lease lasts under which a spool is absorbed: it is given back at once. */
const spoolTtlMs = 30_000;

const othersMask = 0o077;

/**
 * Takes the store's files from others, or only tells which are open to them. To be called before it is opened, which takes
 * the database from them without saying it.
 */
export async function mendModes(
  storePath: string,
  { isDryRun }: { readonly isDryRun: boolean },
): Promise<readonly Mended[]> {
  const spool = `${storePath}-spool`;
  const spooled = (await readdir(spool).catch(() => [])).map((name) => path.join(spool, name));
  const files = [storePath, `${storePath}-wal`, `${storePath}-shm`, `${storePath}-reserve`, spool, ...spooled];
  const mends: Mended[] = [];
  for (const file of files) {
    const stats = await stat(file).catch(() => undefined);
    if (!stats || (stats.mode & othersMask) === 0) continue;
    const mode = stats.isDirectory() ? 0o700 : 0o600;
    const had = (stats.mode & 0o777).toString(8);
    if (isDryRun) {
      mends.push({ detail: `${file} has mode ${had} and gets ${mode.toString(8)}` });
      continue;
    }
    // By path: a descriptor that is opened and closed would cancel SQLite's locks.
    await chmod(file, mode);
    mends.push({ detail: `${file} had mode ${had}, and has ${mode.toString(8)} now` });
  }
  return mends;
}

class Repair {
  readonly mends: Mended[] = [];
  readonly left: NotMended[] = [];
  readonly #deps: RepairDeps;
  /** What waited in the spool of each session before anything was done. */
  readonly #waiting: ReadonlyMap<string, SpoolView>;

  constructor(deps: RepairDeps, waiting: readonly SpoolView[]) {
    this.#deps = deps;
    this.#waiting = new Map(waiting.map((view) => [view.sessionId, view]));
  }

  async turns(sessionId: string | undefined): Promise<void> {
    const { store, presence } = this.#deps;
    const running = await store.turns.running(sessionId);
    const settled = await reapTurns({ store, presence, endProcesses: endLeftProcesses }, sessionId);
    for (const { turn, inputIds, openCallIds } of settled) {
      const rows = [`inputs [${inputIds.join(", ")}]`, `open calls [${openCallIds.join(", ")}]`].join(" and ");
      const detail = `turn ${turn.turnId} of pid ${turn.holder.pid} is settled as crashed, with ${rows}`;
      this.mends.push({ session: turn.sessionId, detail });
    }
    const crashed = new Set(settled.map(({ turn }) => turn.turnId));
    for (const { turn } of running) if (!crashed.has(turn.turnId)) await this.#endedBySpool(turn);
  }

  /** Whoever settles absorbs what the store had refused; where the end was among it, nothing is left to be settled. */
  async #endedBySpool({ sessionId, turnId, holder }: OpenTurn): Promise<void> {
    const { store } = this.#deps;
    const now = await store.turns.read(sessionId, turnId);
    const [spooled] = await store.spool.waiting(sessionId);
    if (now?.state !== "ended" || !this.#waiting.has(sessionId) || spooled) return;
    const detail = `turn ${turnId} of pid ${holder.pid} is settled as ${now.outcome}, as its end tells that the store had refused`;
    this.mends.push({ session: sessionId, detail });
  }

  async lease(sessionId: string): Promise<void> {
    const { store, presence } = this.#deps;
    const lease = await store.leases.read(sessionId);
    // Asked twice, since a grant is registered just before it is sent.
    const isLeft = lease && (await leftLease(presence, lease)) !== undefined;
    const why = isLeft ? await leftLease(presence, lease) : undefined;
    if (!lease || why === undefined) return;
    const settled = await store.turns.settleForeign(grantOf(lease));
    if (settled.kind === "settled") this.mends.push({ session: sessionId, detail: `${why}; the session is free` });
  }

  async orphans(sessionId: string): Promise<void> {
    const { store, presence } = this.#deps;
    for (const { inputId, runner } of await store.inbox.pending(sessionId)) {
      if (!runner || (await pulseOf(presence, runner)) !== "dead") continue;
      if ((await store.inbox.abandon(sessionId, runner.runnerId)) === 0) continue;
      const detail = `input ${inputId} was to be run by pid ${runner.pid}, which has died; whoever has the session next runs it`;
      this.mends.push({ session: sessionId, detail });
    }
  }

  /** A session that was deleted may have left its spool. */
  async spools(): Promise<void> {
    for (const before of this.#waiting.values()) await this.#spool(before);
  }

  /** A grant that is given back at once absorbs what waits, as any would; what was settled has absorbed it already. */
  async #spool(before: SpoolView): Promise<void> {
    const { store, presence, shown } = this.#deps;
    const { sessionId } = before;
    const isWaiting = (await store.spool.waiting(sessionId)).length > 0;
    const isKnown = isWaiting && (await store.sessions.read(sessionId)) !== undefined;
    const holder = { ...presence.identity, holderId: systemHost.random.id() };
    const registered = presence.register(holder.holderId);
    try {
      const answer = isKnown ? await store.leases.acquire({ sessionId, holder, ttlMs: spoolTtlMs }) : undefined;
      if (answer?.kind === "held" || answer?.kind === "behind") {
        const detail = `${counted(before.stepCount, "step")} in ${before.place} ${before.stepCount === 1 ? "comes" : "come"} back with the turn that runs or waits`;
        this.left.push({ session: sessionId, detail, isHeld: true, next: repairCommand(shown, sessionId) });
        return;
      }
      if (answer?.kind === "granted")
        await store.leases.release({ sessionId, holderId: holder.holderId, fencingToken: answer.fencingToken });
    } finally {
      registered[Symbol.dispose]();
    }
    const [after] = await store.spool.waiting(sessionId);
    const absorbed = before.stepCount - (after?.stepCount ?? 0);
    if (absorbed > 0)
      this.mends.push({
        session: sessionId,
        detail: `${counted(absorbed, "step")} that the store had refused ${absorbed === 1 ? "is" : "are"} back from ${before.place}`,
      });
    if (!after) return;
    // Steps of turns that this store does not know are told with what else is wrong still.
    if (after.damagedCount === 0 || after.stepCount > 0) return;
    const aside = `mv ${shellWord(after.place)} ${shellWord(`${after.place}.aside`)}`;
    const detail = `${counted(after.damagedCount, "damaged line")} ${after.damagedCount === 1 ? "stays" : "stay"} in ${after.place}`;
    this.left.push({ session: sessionId, detail, next: aside });
  }

  async derived(only: string | undefined): Promise<void> {
    const { path: storePath } = this.#deps;
    if (storePath === undefined) return;
    const { checkStructure, rebuildSearchIndex, repairDerived } = await import("@turnkeeper/state-store-sqlite");
    const options = only === undefined ? {} : { sessionId: only };
    this.mends.push(...(await repairDerived(storePath, { host: systemHost }, options)));
    const [fault] = only === undefined ? (await checkStructure(storePath)).indexFaults : [];
    if (fault === undefined) return;
    try {
      await rebuildSearchIndex(storePath, { host: systemHost });
      this.mends.push({ detail: `the search index was damaged and is made anew: ${oneLine(fault)}` });
    } catch (error) {
      // What cannot be removed is told with what is wrong still.
      if (!CodedError.is<StoreErrorCode>(error, "STORE_CORRUPT")) throw error;
    }
  }

  /** What is wrong still can be brought into a new store only. */
  async rest(only: string | undefined): Promise<void> {
    const { path: storePath, shown } = this.#deps;
    const found = await verifyStore(this.#deps, only);
    const next = storePath === undefined ? verifyCommand(shown) : inspectCommand(storePath);
    for (const { rule, session, detail } of found?.violations ?? [])
      this.left.push({ session, detail: `${rule}: ${detail}`, next });
  }
}

function grantOf({ sessionId, holder, fencingToken }: LeaseView): Grant {
  return { sessionId, holderId: holder.holderId, fencingToken };
}

/** Mends what is left by whoever is gone and what is derived, of one session or of all; nothing else. Safe to repeat. */
export async function repairStore(deps: RepairDeps, only?: string): Promise<RepairReport> {
  const repair = new Repair(deps, await deps.store.spool.waiting(only));
  await repair.turns(only);
  const ids = only === undefined ? sessionIds(deps.store) : [only];
  for await (const sessionId of ids) {
    await repair.lease(sessionId);
    await repair.orphans(sessionId);
  }
  await repair.spools();
  await repair.derived(only);
  await repair.rest(only);
  return { mends: repair.mends, left: repair.left };
}
