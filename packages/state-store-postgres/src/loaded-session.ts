import type { CallRow } from "./entry-rows.ts";
import type { InputRow } from "./input-rows.ts";
import type { LeaseRow } from "./lease-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import type { TurnRow } from "./turn-rows.ts";

/** What `load_session` answers. */
export interface LoadedSession {
  readonly clock_ms: number;
  readonly wall_ms: number;
  readonly lease: (LeaseRow & { readonly version: number; readonly receipts: readonly string[] }) | null;
  readonly session: SessionRow | null;
  readonly turns: readonly TurnRow[] | null;
  readonly inputs: readonly InputRow[] | null;
  readonly calls: readonly CallRow[] | null;
  readonly digests: Readonly<Record<string, string>> | null;
  readonly unbegun_children: readonly string[] | null;
  readonly last_bodies: readonly string[] | null;
}

/** What `save_session` answers. */
export interface SavedSession {
  readonly version: number;
  readonly session_no: number | null;
  readonly input_seq: number | null;
  readonly at_ms: number;
}
