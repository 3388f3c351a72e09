import { findPostgres } from "@turnkeeper/postgres-server";
import { describe, expect, test } from "vitest";
import { runExclusion } from "../src/run.ts";

// Needs a server of PostgreSQL on this machine: its binaries, or PG_BIN. What is checked, and that it finds out who
// breaks a rule, is the same as on a file: its control runs are there.
describe.skipIf(findPostgres() === undefined)("processes of three hosts on one server", () => {
  test("keep every rule while they are killed and stopped, the server is killed, and the way to it is cut", async () => {
    const { violations, reach, faultMs } = await runExclusion({
      seed: 3,
      processCount: 6,
      durationMs: 5_000,
      // A machine with other work gets longer to be hit as often; what is never reached fails.
      patienceMs: 90_000,
      ground: "server",
      mode: "fenced",
      floors: { grants: 6, kills: 1, stops: 2, serverKills: 1, cuts: 1, halfCloses: 1, delays: 1 },
    });
    process.stdout.write(`${(faultMs / 1_000).toFixed(1)} s under faults: ${JSON.stringify(reach)}\n`);
    expect(violations).toEqual([]);
  }, 240_000);
});
