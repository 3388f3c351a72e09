import type { ProcessMarker } from "@turnkeeper/agent-core";
import { toolError } from "./errors.ts";

/** Names the call within its turn, so that ending one call leaves the others of the same turn alone. */
export const callMarkerName = "TURNKEEPER_CALL";

/** A marker without a variable, or with an empty one, would match processes that are nobody's business. */
export function checkedMarker(marker: ProcessMarker): ProcessMarker {
  const entries = Object.entries(marker);
  const sound =
    entries.length > 0 && entries.every(([name, value]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && value !== "");
  if (sound) return marker;
  throw toolError(
    "OPTION_INVALID",
    `killMarkedProcesses: marker: expected at least one variable, none empty, got ${JSON.stringify(marker)}.`,
  );
}
