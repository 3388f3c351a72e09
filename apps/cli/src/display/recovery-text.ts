import type { RecoveryProgress, RecoveryReport } from "@turnkeeper/state-store-sqlite";
import { counted } from "./count-text.ts";
import { table } from "./transcript-text.ts";

/** A person reads a few of a kind; all of them are in the JSON. */
const shownMax = 20;

function shown(items: readonly string[]): readonly string[] {
  const more = items.length - shownMax;
  return more > 0 ? [...items.slice(0, shownMax), `… and ${more} more: --json has them all`] : items;
}

function where({ page, cell, row }: { readonly page: number; readonly cell: number; readonly row?: number }): string {
  return `page ${page}, cell ${cell}${row === undefined ? "" : `, row ${row}`}`;
}

function spoolTexts({ session, stepCount, damagedCount }: RecoveryReport["spool"][number]): readonly string[] {
  const steps = `spool: ${counted(stepCount, "step")} of session ${session} that the store had refused: back with its next turn`;
  const damaged = `spool: ${counted(damagedCount, "damaged line")} of session ${session}`;
  return [...(stepCount > 0 ? [steps] : []), ...(damagedCount > 0 ? [damaged] : [])];
}

/** What a recovery found and made, as lines. */
export function recoveryLines(report: RecoveryReport): readonly string[] {
  const { source, tables } = report;
  const rows = tables.map((one) => [
    one.table,
    ...[one.foundCount, one.broughtCount, one.olderCount, one.refusedCount].map(String),
  ]);
  const log = source.walFrameCount > 0 ? `, ${source.walFrameCount} frames of its -wal` : "";
  const damagedLog =
    source.damagedWalFrameCount > 0 ? [`damaged: ${source.damagedWalFrameCount} frames of the -wal`] : [];
  const missingLog =
    source.missingWalFrameCount > 0
      ? [`missing: ${source.missingWalFrameCount} frames that the -wal had, as the -shm tells: it was cut short`]
      : [];
  return [
    `${source.path}: ${(source.byteCount / 1e6).toFixed(1)} MB, ${source.pageCount} pages of ${source.pageSize} bytes${log}`,
    ...table([["table", "found", "brought", "older copies", "refused"], ...rows]),
    ...damagedLog,
    ...missingLog,
    ...shown(
      report.unreadPages.map(
        ({ page, table: owner, isDerived, reason }) =>
          `unread: page ${page}${owner === undefined ? "" : ` of ${owner}`}: ${reason}${isDerived ? "; it is made anew" : ""}`,
      ),
    ),
    ...shown(report.refusedRows.map((one) => `refused: ${one.table ?? "unknown table"}, ${where(one)}: ${one.reason}`)),
    ...shown(
      report.missingEntries.map(({ session, fromSeq, throughSeq }) =>
        fromSeq === throughSeq
          ? `missing: entry ${fromSeq} of session ${session}`
          : `missing: entries ${fromSeq} to ${throughSeq} of session ${session}`,
      ),
    ),
    ...shown(report.mends.map(({ session, detail }) => `mended: ${session}: ${detail}`)),
    ...shown(report.violations.map(({ rule, session, detail }) => `violation: ${rule}  ${session}  ${detail}`)),
    ...report.spool.flatMap(spoolTexts),
    ...report.notes.map((text) => `note: ${text}`),
    report.isComplete ? "Nothing is lost." : "What is named above is not in the recovered store as it was.",
  ];
}

const stages: Readonly<Record<RecoveryProgress["stage"], string>> = {
  read: "pages read",
  mend: "sessions mended",
  verify: "sessions verified",
};

export function progressLine({ stage, doneCount, totalCount }: RecoveryProgress): string {
  return `${doneCount} of ${totalCount} ${stages[stage]}`;
}
