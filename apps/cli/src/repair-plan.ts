/** What `sessions repair` would do, found by looking alone. */
import { pulseOf } from "@turnkeeper/agent-core";
import { counted } from "./display/count-text.ts";
import { inspectCommand, repairCommand, verifyCommand } from "./printed-command.ts";
import type { Mended, NotMended, RepairDeps, RepairReport } from "./store-repair.ts";
import { sessionIds, verifyStore } from "./store-verification.ts";

async function orphansIn({ store, presence }: RepairDeps, sessionId: string): Promise<readonly Mended[]> {
  const orphans: Mended[] = [];
  for (const { inputId, runner } of await store.inbox.pending(sessionId)) {
    if (!runner || (await pulseOf(presence, runner)) !== "dead") continue;
    const detail = `input ${inputId} is to be run by pid ${runner.pid}, which has died, and goes to whoever has the session next`;
    orphans.push({ session: sessionId, detail });
  }
  return orphans;
}

/** What waits in the spool of sessions that are there and free comes back; the rest is told with what is wrong. */
async function spooled(
  { store, shown }: RepairDeps,
  { only, freed }: { readonly only: string | undefined; readonly freed: ReadonlySet<string> },
): Promise<{ readonly mends: readonly Mended[]; readonly left: readonly NotMended[] }> {
  const mends: Mended[] = [];
  const left: NotMended[] = [];
  for (const { sessionId: session, stepCount, damagedCount, place } of await store.spool.waiting(only)) {
    const isHeld = !freed.has(session) && (await store.leases.read(session)) !== undefined;
    const detail = `${counted(stepCount, "step")} that the store had refused: in ${place}`;
    if (stepCount > 0 && isHeld) left.push({ session, detail, isHeld, next: repairCommand(shown, session) });
    else if (stepCount > 0 && (await store.sessions.read(session))) mends.push({ session, detail });
    if (damagedCount > 0)
      left.push({
        session,
        detail: `${counted(damagedCount, "damaged line")} in ${place}`,
        next: repairCommand(shown, session),
      });
  }
  return { mends, left };
}

/** The same report as of a repair, of what one would find now. Changes nothing. */
export async function planRepair(deps: RepairDeps, only?: string): Promise<RepairReport> {
  const found = await verifyStore(deps, only);
  const { violations = [], left: leases = [] } = found ?? {};
  const mends: Mended[] = leases.map(({ session, detail }) => ({ session, detail: `${detail}: its turn is settled` }));
  const ids = only === undefined ? sessionIds(deps.store) : [only];
  for await (const sessionId of ids) mends.push(...(await orphansIn(deps, sessionId)));
  const spool = await spooled(deps, { only, freed: new Set(leases.map(({ session }) => session)) });
  mends.push(...spool.mends);
  for (const { rule, session, detail } of violations) if (rule === "DERIVED") mends.push({ session, detail });
  const broken = violations.filter(({ rule }) => rule !== "DERIVED");
  const left = broken.map(({ rule, session, detail }) => ({
    session,
    detail: `${rule}: ${detail}`,
    next: deps.path === undefined ? verifyCommand(deps.shown) : inspectCommand(deps.path),
  }));
  return { mends, left: [...spool.left, ...left] };
}
