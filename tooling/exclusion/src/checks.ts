import { verifyRecords } from "@turnkeeper/state-store";
import type { SessionRecords } from "@turnkeeper/state-store";
import { effectViolations } from "./effect-checks.ts";
import { grantViolations } from "./grant-checks.ts";
import { inputViolations } from "./input-checks.ts";
import type { RecordIndex } from "./record-index.ts";
import { transcriptViolations } from "./transcript-checks.ts";

/** Everything that the history and the store, at rest, do not agree on, a sentence each, each with its rule's id. */
export function violationsOf(index: RecordIndex, records: SessionRecords): readonly string[] {
  return [
    ...grantViolations(index),
    ...effectViolations(index),
    ...transcriptViolations(index, records),
    ...inputViolations(index, records),
    ...verifyRecords(records).map(({ rule, detail }) => `${rule}: ${detail}`),
  ];
}
