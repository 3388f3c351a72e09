import { appendCases } from "./cases/append-cases.ts";
import { approvalCases } from "./cases/approval-cases.ts";
import { awaitedResultCases } from "./cases/awaited-result-cases.ts";
import { awaitedChildCases } from "./cases/awaited-child-cases.ts";
import { childCases } from "./cases/child-cases.ts";
import { compactionCases } from "./cases/compaction-cases.ts";
import { compactionHealthCases } from "./cases/compaction-health-cases.ts";
import { grantCases } from "./cases/grant-cases.ts";
import { importCases } from "./cases/import-cases.ts";
import { inboxCases } from "./cases/inbox-cases.ts";
import { leaseTermCases } from "./cases/lease-cases.ts";
import { offerCases } from "./cases/offer-cases.ts";
import { queueCases } from "./cases/queue-cases.ts";
import { retryCases } from "./cases/retry-cases.ts";
import { searchCases } from "./cases/search-cases.ts";
import { sessionCases } from "./cases/session-cases.ts";
import { settlementCases } from "./cases/settlement-cases.ts";
import { spoolCases } from "./cases/spool-cases.ts";
import { steerCases } from "./cases/steer-cases.ts";
import { stopCases } from "./cases/stop-cases.ts";
import { transcriptCases } from "./cases/transcript-cases.ts";
import { turnCases } from "./cases/turn-cases.ts";
import type { ConformanceCase, LeaseOnly } from "./conformance-case.ts";

/** The rules of `LeaseStore`, through that port alone: for an author who implements no other. */
export const leaseCases: readonly ConformanceCase<LeaseOnly>[] = [...leaseTermCases, ...grantCases];

/** Every rule that a `StateStore` keeps. An adapter passes all of them, in any order, each with a store of its own. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...leaseCases,
  ...offerCases,
  ...inboxCases,
  ...steerCases,
  ...childCases,
  ...queueCases,
  ...turnCases,
  ...stopCases,
  ...approvalCases,
  ...awaitedResultCases,
  ...awaitedChildCases,
  ...settlementCases,
  ...appendCases,
  ...retryCases,
  ...compactionCases,
  ...compactionHealthCases,
  ...transcriptCases,
  ...sessionCases,
  ...importCases,
  ...searchCases,
  ...spoolCases,
];
