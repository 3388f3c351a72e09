/**
 * The process that recovers: node recovery-process.js REQUEST, with an IPC channel. Reading a store's bytes would cancel
 * the locks of a process that has it open, and hours of synchronous work would block one that does anything else.
 */
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { explain } from "../store-failure.ts";
import { recover } from "./recovery.ts";
import type { RecoveryRequest } from "./recovery-request.ts";
import type { RecoveryProgress, RecoveryReport } from "./recovery-report.ts";

/** What the parent is told. */
export type RecoveryMessage =
  | { readonly kind: "progress"; readonly progress: RecoveryProgress }
  | { readonly kind: "recovered"; readonly report: RecoveryReport }
  | {
      readonly kind: "failed";
      /** Absent for a defect of this package. */
      readonly code?: string;
      readonly message: string;
      readonly context: Readonly<Record<string, unknown>>;
    };

function send(message: RecoveryMessage): Promise<void> {
  return new Promise((resolve) => {
    // Nobody is left to tell: the parent removes what was begun, or is gone and nobody will take it.
    if (!process.send) process.exit(1);
    process.send(message, (error: Error | null) => {
      if (error) process.exit(1);
      resolve();
    });
  });
}

function failureOf(error: unknown, source: string): RecoveryMessage {
  const told = explain(error, { attempt: "recover", path: source, phase: "read" });
  if (CodedError.is(told)) return { kind: "failed", code: told.code, message: told.message, context: told.context };
  return { kind: "failed", message: told instanceof Error ? (told.stack ?? told.message) : String(told), context: {} };
}

const request = JSON.parse(process.argv[2] ?? "{}") as RecoveryRequest;
process.on("disconnect", () => process.exit(1));
let message: RecoveryMessage;
try {
  const report = await recover(request, {
    host: systemHost,
    tell: (progress) => send({ kind: "progress", progress }),
  });
  message = { kind: "recovered", report };
} catch (error) {
  message = failureOf(error, request.source);
}
await send(message);
process.exit(0);
