/** What is known of a session's summaries outlives processes, and is written only by who has the session. */
import assert from "node:assert/strict";
import type { CompactionHealth } from "../../compaction-health.ts";
import type { Grant } from "../../identity.ts";
import type { StateStore } from "../../state-store.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { changesNothing, finishes, says, session, startTurn, summarises } from "../scene.ts";

const stalled: CompactionHealth = { stallCount: 1, outputCapCount: 0, thinCount: 0, error: "It was silent." };

async function speakingTurn(store: StateStore): Promise<{ readonly grant: Grant; readonly turnId: string }> {
  const { grant, turnId } = await startTurn(store, "a");
  await store.transcript.append({ grant, turnId, entries: [says("one", "text one")] });
  return { grant, turnId };
}

async function arm(
  store: StateStore,
  grant: Grant,
  coolDownMs: number,
  health = stalled,
): Promise<CompactionHealth | undefined> {
  const answer = await changesNothing(store, () => store.transcript.setCompactionHealth({ grant, health, coolDownMs }));
  assert.equal(answer.kind, "set");
  return answer.health;
}

export const compactionHealthCases: readonly ConformanceCase[] = [
  {
    id: "SESSION-HEALTH",
    title: "counters and cool-down outlive the process and the turn, and the cool-down runs out by the store's clock",
    async run({ open, reopen, host }) {
      const first = await open();
      assert.deepEqual(await first.transcript.compactionHealth("nobody"), { coolDownMs: 0 });
      const turn = await speakingTurn(first);
      assert.deepEqual(await first.transcript.compactionHealth(session), { coolDownMs: 0 });
      const armed = await arm(first, turn.grant, 60_000);
      await finishes(first, "a", turn.grant);
      const store = await reopen();
      await host.advance(20_000);
      const { health, coolDownMs } = await store.transcript.compactionHealth(session);
      assert.deepEqual(health, armed);
      assert.deepEqual({ ...health, coolDownEnds: undefined }, { ...stalled, coolDownEnds: undefined });
      assert.ok(coolDownMs > 39_000 && coolDownMs <= 40_000, `${coolDownMs} ms are left of 40,000`);
      await host.advance(40_000);
      assert.deepEqual(await store.transcript.compactionHealth(session), { health: armed, coolDownMs: 0 });
    },
  },
  {
    id: "SESSION-HEALTH-MAX",
    title: "a shorter cool-down written later never reopens the window, and the error is the latest",
    async run({ open, host }) {
      const store = await open();
      const { grant } = await speakingTurn(store);
      const long = await arm(store, grant, 900_000);
      const latest = { ...stalled, stallCount: 2, error: "No JSON." };
      assert.deepEqual(await arm(store, grant, 30_000, latest), { ...latest, coolDownEnds: long?.coolDownEnds });
      await host.advance(890_000);
      const { coolDownMs } = await store.transcript.compactionHealth(session);
      assert.ok(coolDownMs > 0 && coolDownMs <= 10_000, `${coolDownMs} ms are left of 10,000`);
      const longer = await arm(store, grant, 60_000);
      assert.notDeepEqual(longer?.coolDownEnds, long?.coolDownEnds);
    },
  },
  {
    id: "SESSION-HEALTH-BACK",
    title: "an attempt is taken back exactly: to nothing, and to a cool-down that has run out",
    async run({ open, host }) {
      const store = await open();
      const { grant } = await speakingTurn(store);
      await arm(store, grant, 60_000);
      assert.deepEqual(await store.transcript.setCompactionHealth({ grant }), { kind: "set" });
      assert.deepEqual(await store.transcript.compactionHealth(session), { coolDownMs: 0 });
      const past = await arm(store, grant, 60_000);
      assert.ok(past, "nothing was stored");
      await host.advance(61_000);
      await arm(store, grant, 300_000, { ...stalled, stallCount: 2 });
      const back = await store.transcript.setCompactionHealth({ grant, health: past });
      assert.deepEqual(back, { kind: "set", health: past });
      assert.deepEqual(await store.transcript.compactionHealth(session), { health: past, coolDownMs: 0 });
    },
  },
  {
    id: "SESSION-HEALTH-TOKEN",
    title: "who lost the session notes nothing in it",
    async run({ open }) {
      const store = await open();
      const { grant } = await speakingTurn(store);
      const armed = await arm(store, grant, 60_000);
      const { granted } = await startTurn(store, "b", { reclaim: grant });
      assert.equal(granted.kind, "granted");
      assert.deepEqual(await store.transcript.setCompactionHealth({ grant }), { kind: "stale-token" });
      assert.deepEqual((await store.transcript.compactionHealth(session)).health, armed);
    },
  },
  {
    id: "SESSION-HEALTH-APPLIED",
    title: "a summary that is applied ends the cool-down in its own transaction, or keeps what it is told to keep",
    async run({ open, reopen }) {
      const first = await open();
      const { grant, turnId } = await speakingTurn(first);
      await arm(first, grant, 60_000);
      const thin = { stallCount: 0, outputCapCount: 0, thinCount: 1 };
      const apply = async (store: StateStore, key: string, health?: CompactionHealth): Promise<void> => {
        const { entries, compactionCount } = await store.transcript.load(session);
        const basis = { throughSeq: entries.at(-1)?.seq ?? 0, compactionCount };
        const summary = summarises(key, key);
        const request = { grant, turnId, basis, summary, ...(health ? { health } : {}) };
        assert.equal((await store.transcript.applyCompaction(request)).kind, "applied");
      };
      await apply(first, "first", thin);
      const store = await reopen();
      assert.deepEqual(await store.transcript.compactionHealth(session), { health: thin, coolDownMs: 0 });
      await apply(store, "second");
      assert.deepEqual(await store.transcript.compactionHealth(session), { coolDownMs: 0 });
    },
  },
  {
    id: "SESSION-HEALTH-BOOT",
    title: "a cool-down of another boot is over; its counters are not",
    needs: "boot-clock",
    async run({ open, reopen, host }) {
      const store = await open();
      const { grant } = await speakingTurn(store);
      const armed = await arm(store, grant, 900_000);
      host.reboot();
      const again = await reopen();
      assert.deepEqual(await again.transcript.compactionHealth(session), { health: armed, coolDownMs: 0 });
    },
  },
];
