import { coolDownMsOf, withCoolDown } from "@turnkeeper/state-store";
import type {
  BootInstant,
  CompactionHealth,
  CompactionHealthRequest,
  CompactionHealthResult,
} from "@turnkeeper/state-store";
import { parseJson, toJson } from "./json-column.ts";
import { isGrantOf } from "./lease-rows.ts";
import type { SessionImage } from "./session-image.ts";
import type { SessionRow } from "./session-rows.ts";

type HealthColumn = Pick<SessionRow, "compaction_health">;

function healthOf({ compaction_health }: HealthColumn): CompactionHealth | undefined {
  return compaction_health === null
    ? undefined
    : parseJson<CompactionHealth>(compaction_health, "session.compaction_health");
}

export function healthView(
  row: HealthColumn | undefined,
  now: BootInstant,
): { readonly health?: CompactionHealth; readonly coolDownMs: number } {
  const health = row && healthOf(row);
  return { ...(health ? { health } : {}), coolDownMs: coolDownMsOf(health, now) };
}

export function storeCompactionHealth(image: SessionImage, health: CompactionHealth | undefined): void {
  const row = image.ensureSession();
  const text = toJson(health);
  if (text !== row.compaction_health) image.putSession({ ...row, compaction_health: text });
}

export function setCompactionHealth(image: SessionImage, request: CompactionHealthRequest): CompactionHealthResult {
  const { grant, health, coolDownMs } = request;
  if (!isGrantOf(image.lease, grant)) return { kind: "stale-token" };
  const row = image.session;
  if (!row) return { kind: "set" };
  const isArmed = health !== undefined && coolDownMs !== undefined;
  const stored = isArmed ? withCoolDown(health, coolDownMs, healthOf(row), image.now) : health;
  storeCompactionHealth(image, stored);
  return { kind: "set", ...(stored ? { health: stored } : {}) };
}
