/** A process whose bearer was refused: node refreshing-process.ts JSON. Waits for a line, and prints what it sends next. */
import { once } from "node:events";
import { systemHost } from "@turnkeeper/kernel";
import { describeModelError, refreshableCredential } from "@turnkeeper/models";
import { fileLock } from "@turnkeeper/state-store-sqlite";

const { file = "", tokenUrl = "", isLocked } = JSON.parse(process.argv[2] ?? "{}") as Record<string, string>;
const host = systemHost;
const unlocked = {
  hold: async <Value>(work: () => Promise<Value>) => ({ kind: "held", value: await work() }) as const,
};
const lock = isLocked === "no" ? unlocked : fileLock(`${file}.lock`, { host });
const credential = refreshableCredential({ host, lock }, { file, tokenUrl, clientId: "turnkeeper" });
process.stdout.write("ready\n");
await once(process.stdin, "data");
process.stdin.destroy();
const next = await credential.replacement("token-0").catch((error: unknown) => describeModelError(error).message);
process.stdout.write(`${next}\n`);
