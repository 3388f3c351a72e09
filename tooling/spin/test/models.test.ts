import { describe, expect, it } from "vitest";
import { experiments, nameOf } from "../src/experiment.ts";
import { missingTools, verify } from "../src/verifier.ts";

const missing = missingTools();
const hasSpinAndCompiler = missing === undefined;

describe.skipIf(!hasSpinAndCompiler)(
  `the models of the claim and of the lease${hasSpinAndCompiler ? "" : ` (skipped: ${missing})`}`,
  () => {
    for (const experiment of experiments) {
      const title = experiment.finds === undefined ? "holds in every run" : "is a race, and is found";
      it(`${nameOf(experiment)} ${title}`, { timeout: 240_000 }, () => {
        expect(verify(experiment)).toMatchObject({ isAsExpected: true });
      });
    }
  },
);
