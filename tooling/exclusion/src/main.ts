// Runs the checker once and prints what was reached and every violation; the options stand in run.mjs.
import { parseArgs } from "node:util";
import { modes } from "./bounds.ts";
import { groundNames } from "./ground.ts";
import { runExclusion } from "./run.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    processes: { type: "string", default: "8" },
    seed: { type: "string", default: "1" },
    mode: { type: "string", default: "fenced" },
    ground: { type: "string", default: "file" },
    keep: { type: "boolean", default: false },
  },
});
const mode = modes.find((one) => one === values.mode);
if (!mode) throw new Error(`--mode must be one of ${modes.join(", ")}, got ${values.mode}.`);
const ground = groundNames.find((one) => one === values.ground);
if (!ground) throw new Error(`--ground must be one of ${groundNames.join(", ")}, got ${values.ground}.`);
const seconds = Number(values.seconds);

/** So many of each in a minute, at least: what a machine manages that has four times as much other work. */
const perMinute =
  ground === "file"
    ? { grants: 40, kills: 12, stops: 20, takeoversByDeath: 4, takeoversByExpiry: 4, staleRefusals: 4, losses: 2 }
    : // The server is away for a third of the time, and of whom another host killed only the expiry tells.
      { grants: 12, kills: 6, stops: 10, takeoversByExpiry: 2, serverKills: 3, cuts: 3, halfCloses: 3, delays: 3 };
const floors = Object.fromEntries(
  Object.entries(perMinute).map(([name, count]) => [name, Math.ceil((count * Math.min(seconds, 60)) / 60)]),
);

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());

const report = await runExclusion({
  seed: Number(values.seed),
  processCount: Number(values.processes),
  durationMs: seconds * 1_000,
  patienceMs: seconds * 1_000,
  floors,
  mode,
  ground,
  isKept: values.keep,
  signal: stop.signal,
});
const listedMax = 40;
for (const violation of report.violations.slice(0, listedMax)) console.error(violation);
const { reach, violations } = report;
console.log(
  `${violations.length} violations. ${values.processes} processes (${mode}), seed ${values.seed}, ${(report.faultMs / 1_000).toFixed(1)} s under faults: ` +
    `${reach.kills} kills and ${reach.stops} stops; ${reach.grants} grants, of them ${reach.takeoversByDeath} after a death and ` +
    `${reach.takeoversByExpiry} after an expiry; ${reach.renewals} renewals, ${reach.appends} acknowledged appends, ` +
    `${reach.staleRefusals} writes refused for a stale token, ${reach.losses} losses noticed; ${reach.effects} side effects, ` +
    `${reach.lateEffects} stopped between check and start; ${reach.busy} calls repeated on a busy store; ${report.pendingCount} inputs left pending.`,
);
const { serverKills, cuts, halfCloses, delays } = reach;
if (ground === "server")
  console.log(
    `The server was killed ${serverKills} times; the way to it was cut ${cuts} times, half closed ${halfCloses} times and slowed ${delays} times.`,
  );
if (values.keep) console.log(`Store and histories are in ${report.folder}.`);
process.exitCode = violations.length === 0 ? 0 : 1;
