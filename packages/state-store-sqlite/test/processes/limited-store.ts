/**
 * A process that works on a store until a limit of its own is reached, and tells of it: node limited-store.ts PATH LIMIT
 * LIMIT `descriptors`: it takes every descriptor it may have. `file-size`: it appends until a file may grow no more.
 */
import { closeSync, openSync } from "node:fs";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { keysOf, says, turnOf } from "../scene.ts";
import { tell } from "./process-output.ts";

const [path = "", limit = "descriptors"] = process.argv.slice(2);

async function outcomeOf(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call();
    return "done";
  } catch (error) {
    return CodedError.is(error) ? error.code : String(error);
  }
}

function takeAllDescriptors(): number[] {
  const taken: number[] = [];
  for (;;) {
    try {
      taken.push(openSync("/dev/null", "r"));
    } catch {
      return taken;
    }
  }
}

const store = await openSqliteStore(path, { host: systemHost });
const { grant, turnId } = await turnOf(store, "limited");
const append = (key: string, text?: string) => store.transcript.append({ grant, turnId, entries: [says(key, text)] });
const openAnother = async (): Promise<void> => {
  const another = await openSqliteStore(`${path}.other`, { host: systemHost });
  await another.close();
};

if (limit === "descriptors") {
  await append("before");
  const taken = takeAllDescriptors();
  tell({
    takenCount: taken.length,
    append: await outcomeOf(() => append("without")),
    read: await outcomeOf(() => keysOf(store)),
    openAnother: await outcomeOf(openAnother),
  });
  for (const descriptor of taken) closeSync(descriptor);
  tell({ openAnother: await outcomeOf(openAnother), append: await outcomeOf(() => append("after")) });
} else {
  const stored: string[] = [];
  let outcome: unknown = "done";
  for (let count = 0; outcome === "done" && count < 1_000; count++) {
    outcome = await outcomeOf(() => append(`key-${count}`, "x".repeat(20_000)));
    if (outcome === "done") stored.push(`key-${count}`);
  }
  // The spool is a file of its own, and so has room still; until it may not grow either.
  const step = (key: string, text: string) => ({ grant, turnId, entries: [says(key, text)] });
  const kept = await outcomeOf(() => store.spool.keep(step("kept", "y".repeat(100_000))));
  let refusal: unknown;
  await store.spool.keep(step("lost", "z".repeat(500_000))).catch((error: unknown) => {
    refusal = CodedError.is(error) ? { code: error.code, message: error.message } : String(error);
  });
  tell({ outcome, stored, found: await keysOf(store), kept, refusal });
}
await store.close();
