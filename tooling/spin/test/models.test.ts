import { describe, expect, it } from "vitest";
import { experiments, nameOf } from "../src/experiment.ts";
import { missingTools, verify } from "../src/verifier.ts";

/** One race of each kind; all of them run by hand, since a verifier has to be compiled for each. */
const inCi = new Set([
  "COMPARE_THEN_PUBLISH",
  "CANCEL_BEFORE_CLAIM",
  "SAY_ON_OBSERVATION",
  "STOP_AFTER_END",
  "WATCH_ENDS_WITH_VETO",
  "TAKE_ANY",
  "WALL_CLOCK",
  "APPEND_UNFENCED",
  "TOKEN_REUSED",
  "BELIEF_FROM_ANSWER",
]);

const missing = missingTools();
const hasSpinAndCompiler = missing === undefined;

describe.skipIf(!hasSpinAndCompiler)(
  `the models of the claim and of the lease${hasSpinAndCompiler ? "" : ` (skipped: ${missing})`}`,
  () => {
    for (const experiment of experiments) {
      if (experiment.race !== undefined && !inCi.has(experiment.race)) continue;
      const title = experiment.finds === undefined ? "holds in every run" : "is a race, and is found";
      it(`${nameOf(experiment)} ${title}`, { timeout: 240_000 }, () => {
        expect(verify(experiment)).toMatchObject({ isAsExpected: true });
      });
    }
  },
);
