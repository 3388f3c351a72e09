/**
 * One of two processes that hand a session to each other: node contender.js SETTINGS
 * It is told over its channel when to acquire and when to release, and answers with the moment it did.
 */
import type { ContenderSettings } from "../contention.ts";
import { openContention } from "../open-contention.ts";
import { nowNs } from "../stopwatch.ts";

export interface ContenderCommand {
  readonly act: "acquire" | "release" | "close";
  /** Nobody holds it: mechanisms that keep no state need to be told. */
  readonly isFree?: boolean;
}

export interface ContenderAnswer {
  readonly act: "ready" | "acquire" | "release" | "close";
  /** When acquire returned; when release was called. */
  readonly atNs: number;
}

const contention = await openContention(JSON.parse(process.argv[2] ?? "{}") as ContenderSettings);
const answer = (one: ContenderAnswer): void => void process.send?.(one);

async function obey({ act, isFree }: ContenderCommand): Promise<void> {
  if (act === "close") await contention.close();
  if (act === "acquire") await contention.acquire(isFree ?? false);
  const atNs = nowNs();
  if (act === "release") await contention.release();
  answer({ act, atNs });
  if (act === "close") process.disconnect();
}

process.on("message", (command) => void obey(command as ContenderCommand));
// Whoever started it is gone: so is the reason to go on.
process.on("disconnect", () => process.exit());
answer({ act: "ready", atNs: nowNs() });
