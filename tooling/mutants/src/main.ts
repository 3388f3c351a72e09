// Runs the sweep once and prints a line for each mutation and the score; the options stand in run.mjs.
import { availableParallelism } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { sweep } from "./sweep.ts";
import { mutationTable } from "./table.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { lanes: { type: "string", default: String(Math.min(4, availableParallelism())) } },
});
const laneCount = Number(values.lanes);
if (!Number.isSafeInteger(laneCount) || laneCount < 1)
  throw new Error(`--lanes must be a whole number of at least 1, got ${values.lanes}.`);
const isMeant = (name: string, id: string): boolean => id === name || id.startsWith(`${name}/`);
const unknown = positionals.find((name) => !mutationTable.some(({ id }) => isMeant(name, id)));
if (unknown !== undefined) throw new Error(`There is no package and no mutation ${unknown} in the table.`);
const meant = mutationTable.filter(
  ({ id }) => positionals.length === 0 || positionals.some((name) => isMeant(name, id)),
);

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const verdicts = await sweep(meant, {
  root,
  laneCount,
  signal: stop.signal,
  onVerdict: ({ mutation: { id, guards }, isCaught, told, testMs }) =>
    console.log(
      isCaught
        ? `caught    ${id} (${guards}) in ${(testMs / 1_000).toFixed(2)} s by: ${told}`
        : `SURVIVED  ${id} (${guards}): ${told}`,
    ),
});
const caughtCount = verdicts.filter(({ isCaught }) => isCaught).length;
const survivorCount = verdicts.length - caughtCount;
const projects = [...new Set(verdicts.map(({ mutation }) => mutation.project))];
for (const project of projects.length > 1 ? projects : []) {
  const own = verdicts.filter(({ mutation }) => mutation.project === project);
  const ownCaughtCount = own.filter(({ isCaught }) => isCaught).length;
  console.log(`${project}: ${ownCaughtCount} caught, ${own.length - ownCaughtCount} survived`);
}
console.log(`mutants: ${caughtCount} caught, ${survivorCount} survived`);
process.exitCode = survivorCount === 0 && verdicts.length === meant.length ? 0 : 1;
