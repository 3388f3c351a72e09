// Runs the experiments and prints a line for each: node tooling/spin/run.mjs [MODEL ...]
import { experiments, nameOf } from "./experiment.ts";
import { missingTools, verify } from "./verifier.ts";

const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !experiments.some(({ model }) => model === name));
if (unknown !== undefined) throw new Error(`There is no model ${unknown}.`);
const missing = missingTools();
if (missing === undefined) {
  let failureCount = 0;
  const meant = experiments.filter(({ model }) => wanted.length === 0 || wanted.includes(model));
  for (const experiment of meant) {
    const { isAsExpected, told } = verify(experiment);
    if (!isAsExpected) failureCount++;
    console.log(`${isAsExpected ? "ok    " : "FAILED"}  ${nameOf(experiment)}: ${told}`);
  }
  console.log(`spin: ${meant.length - failureCount} as expected, ${failureCount} not`);
  process.exitCode = failureCount === 0 ? 0 : 1;
} else {
  console.error(`Nothing was verified: ${missing}.`);
  process.exitCode = 69;
}
