import { mkdirSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Case } from "./benchmark.ts";
import type { ContenderSettings } from "./contention.ts";
import { Member } from "./member.ts";

export interface Pair {
  readonly settings: Omit<ContenderSettings, "folder" | "name">;
  /** The waiter has been there for at least so long, and at most twice as long: at random in the period of its polls. */
  readonly waitedMs: number;
  /** Hand-overs a round. */
  readonly count: number;
}

/** Two processes that hand the session to each other, over and over. */
export async function pairCase(
  facts: Pick<Case, "name" | "role">,
  folder: string,
  { settings, waitedMs, count }: Pair,
): Promise<Case> {
  mkdirSync(folder, { recursive: true });
  const start = (name: string): Promise<Member> => Member.start({ ...settings, folder, name });
  // One after the other: the first makes what both need.
  let holder = await start("a");
  let waiter = await start("b");
  await holder.acquire(true);
  const handOver = async (): Promise<number> => {
    const acquired = waiter.acquire(false);
    await pause(waitedMs + Math.random() * waitedMs);
    const releasedNs = await holder.release();
    const tookMs = ((await acquired) - releasedNs) / 1e6;
    [holder, waiter] = [waiter, holder];
    return tookMs;
  };
  await handOver();
  await handOver();
  return {
    ...facts,
    measure: async () => {
      const times: number[] = [];
      for (let number = 0; number < count; number++) times.push(await handOver());
      return { wait: times };
    },
    close: async () => {
      await holder.release();
      await Promise.all([holder.close(), waiter.close()]);
    },
  };
}
