import { hostname } from "node:os";
import type { HolderView, TurnFinished } from "@turnkeeper/agent-core";
import { oneLine } from "../one-line.ts";
import { printable } from "./style.ts";

/** Whether this very process has the session, for another message of it. */
export function isOwnProcess(holder: HolderView | undefined): boolean {
  return holder?.pid === process.pid && holder.host === hostname();
}

export function holderText(holder: HolderView | undefined): string {
  return holder ? `pid ${holder.pid} on ${printable(holder.host)}` : "another process";
}

const interruptions: Readonly<Record<string, string>> = {
  "user-message": "Stopped for a newer message.",
  stalled: "The turn made no progress and was stopped; the session is free, send again.",
  "lease-lost": "The session was taken over; the turn was stopped to protect the transcript.",
  deadline: "The turn ran out of its time.",
  shutdown: "The process that ran the turn was shut down.",
  parent: "The turn was stopped with the one that started it.",
  crashed: "The process that ran the turn died; send again.",
};

/** Why a call did not answer, or not wholly, and what to do, on one line; nothing where it answered. */
export function finishedLine({ outcome, reason, detail, by, sessionId }: TurnFinished): string | undefined {
  const why = reason === undefined ? "" : ` (${reason})`;
  const told = detail === undefined ? undefined : oneLine(printable(detail));
  const stopped = by === undefined ? "Stopped." : `Stopped by ${oneLine(printable(by))}.`;
  switch (outcome) {
    case "answered":
      return told;
    case "failed":
      return `failed${why}: ${told ?? "no details were given"}`;
    case "interrupted":
      return `interrupted${why}: ${told ?? interruptions[reason ?? ""] ?? stopped}`;
    case "cancelled":
      return `cancelled${why}: ${told ?? "the message was not run."}`;
    case "queued":
      return `queued${why}: ${told ?? `the message is stored; the turn that runs on session ${sessionId}, or the next one, takes it.`}`;
    case "busy":
      return `busy${why}: ${told ?? `session ${sessionId} is in use; nothing was stored, try again.`}`;
  }
}
