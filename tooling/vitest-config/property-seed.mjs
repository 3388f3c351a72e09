/** Property tests draw the cases of one seed: CI fixes it, so that a red run is about the change and not about chance. */
import { configureGlobal } from "fast-check";

const seed = Number(process.env.FAST_CHECK_SEED);
if (!Number.isSafeInteger(seed))
  throw new Error(`FAST_CHECK_SEED is ${JSON.stringify(process.env.FAST_CHECK_SEED)}; give it an integer.`);
configureGlobal({ seed });
