/**
 * One process that works on a store and tells what was acknowledged: node worker.mjs WORKLOAD
 * With a number of turns it ends by closing the store in its last life; else it runs until it is killed.
 */
import { writeSync } from "node:fs";
import { systemHost } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { SqliteStore } from "@turnkeeper/state-store-sqlite";
import type { Told } from "./acknowledgement.ts";
import { Crew } from "./crew.ts";
import { failureOf } from "./failure.ts";
import { Lane } from "./lane.ts";
import { shapeSqlite } from "./shaped-sqlite.ts";
import type { Workload } from "./workload.ts";

const workload = JSON.parse(process.argv[2] ?? "{}") as Workload;
/** A file that cannot be opened is tried again: the fault may have been a single one. */
const openAttemptsMax = 3;

/** A pipe that is written at once survives kill -9. */
function tell(told: Told): void {
  writeSync(1, `${JSON.stringify(told)}\n`);
}

async function openPatiently(): Promise<SqliteStore | undefined> {
  for (let attempt = 0; attempt < openAttemptsMax; attempt++) {
    try {
      return await openSqliteStore(workload.path, { host: systemHost });
    } catch (error) {
      tell({ told: "failed", attempt: "open", failure: failureOf(error) });
    }
  }
  return undefined;
}

shapeSqlite(workload);
const { random } = virtualHost({ seed: workload.seed });
const crew = new Crew(workload.name);

for (let life = 0; life < workload.lifeCount; life++) {
  const store = await openPatiently();
  if (!store) continue;
  tell({ told: "ready" });
  const lanes = Array.from(
    { length: workload.laneCount },
    (_, lane) => new Lane({ store, random, crew, tell, workload, name: `${workload.name}.${life}.${lane}` }),
  );
  await Promise.all(lanes.map((lane) => lane.run()));
  if (life === workload.lifeCount - 1)
    await new Lane({ store, random, crew, tell, workload, name: `${workload.name}.${life}.spooled` }).runSpooled();
  try {
    await store.close();
  } catch (error) {
    tell({ told: "failed", attempt: "close", failure: failureOf(error) });
  }
}
tell({ told: "done" });
