import { mkdirSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Benchmark, Case, Skipped } from "../benchmark.ts";
import type { ContenderSettings } from "../contention.ts";
import { Member } from "../member.ts";
import { missingPeers } from "../peers.ts";

const limit = "the kernel ends its connection";
const ours = "acquireTurnLease";
const lockfileName = "proper-lockfile, stale after 10 s (default)";

/** A waiter that stays, and a holder that is new in every round and killed in it. */
async function killedCase(
  facts: Pick<Case, "name" | "role">,
  folder: string,
  settings: Omit<ContenderSettings, "folder" | "name">,
): Promise<Case> {
  mkdirSync(folder, { recursive: true });
  const waiter = await Member.start({ ...settings, folder, name: "b" });
  return {
    ...facts,
    measure: async () => {
      const holder = await Member.start({ ...settings, folder, name: "a" });
      await holder.acquire(true);
      const acquired = waiter.acquire(false);
      await pause(100 + Math.random() * 300);
      const killedNs = await holder.kill();
      const tookMs = ((await acquired) - killedNs) / 1e6;
      await waiter.release();
      return { wait: [tookMs] };
    },
    close: () => waiter.close(),
  };
}

export const holderKilled: Benchmark = {
  name: "holder-killed",
  title: "SIGKILL to the holder until the process that waits has the session (a plain row lease: its TTL, 300 s)",
  metrics: [{ name: "wait", unit: "ms", limit }],
  goals: [
    { of: ours, metric: "wait", statistic: "max", atMost: 300, meaning: "milliseconds" },
    { of: ours, metric: "wait", against: { name: lockfileName }, atMost: 0.03 },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 1 : 5),
  open: async (folder): Promise<readonly (Case | Skipped)[]> => [
    await killedCase({ name: limit, role: "limit" }, folder.fresh("end"), { mechanism: "socket-end" }),
    await killedCase({ name: ours, role: "ours" }, folder.fresh("ours"), { mechanism: "ours" }),
    missingPeers(lockfileName, "proper-lockfile") ??
      (await killedCase({ name: lockfileName, role: "peer" }, folder.fresh("lockfile"), {
        mechanism: "proper-lockfile",
        retries: { retries: 1_000, factor: 1, minTimeout: 100, maxTimeout: 100 },
      })),
  ],
};
