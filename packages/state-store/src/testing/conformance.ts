import { appendCases } from "./cases/append-cases.ts";
import { compactionCases } from "./cases/compaction-cases.ts";
import { inboxCases } from "./cases/inbox-cases.ts";
import { leaseCases } from "./cases/lease-cases.ts";
import { queueCases } from "./cases/queue-cases.ts";
import { sessionCases } from "./cases/session-cases.ts";
import { settlementCases } from "./cases/settlement-cases.ts";
import { transcriptCases } from "./cases/transcript-cases.ts";
import { turnCases } from "./cases/turn-cases.ts";
import type { ConformanceCase } from "./conformance-case.ts";

/** Every rule that a `StateStore` keeps. An adapter passes all of them, in any order, each with a store of its own. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...leaseCases,
  ...inboxCases,
  ...queueCases,
  ...turnCases,
  ...settlementCases,
  ...appendCases,
  ...compactionCases,
  ...transcriptCases,
  ...sessionCases,
];
