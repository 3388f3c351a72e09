/** One recovery, from the look at who has the source open to the named new store. Runs in the recovery process alone. */
import type { Host } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { SpoolView, Violation } from "@turnkeeper/state-store";
import { headerBytes, headerIn } from "../file-header.ts";
import type { FileHeader } from "../file-header.ts";
import { isForeignLog } from "../log-mark.ts";
import { newestSchemaVersion } from "../migrations.ts";
import { openSqliteStore } from "../open-store.ts";
import type { JournalMode } from "../sqlite-version.ts";
import { storeError } from "../store-failure.ts";
import { BroughtSpool } from "./brought-spool.ts";
import { OfflineFile } from "./offline-file.ts";
import { Findings } from "./findings.ts";
import { missingFrameCount } from "./log-index.ts";
import { PageImage, SourceFiles } from "./page-image.ts";
import { PageOwners } from "./page-owners.ts";
import { PageWalker } from "./page-walker.ts";
import { partialPathOf } from "./partial-output.ts";
import { RebuiltStore } from "./rebuilt-store.ts";
import { mendRecords } from "./record-mending.ts";
import { changedError, refuseFull, refuseOpen, refuseUnfit } from "./recovery-request.ts";
import type { RecoveryRequest } from "./recovery-request.ts";
import type { RecoveryProgress, RecoveryReport } from "./recovery-report.ts";
import { RowKeeper } from "./row-keeper.ts";
import { SessionNames } from "./session-names.ts";
import { RecoveredTranscript } from "./recovered-transcript.ts";
import { TranscriptMending } from "./transcript-mending.ts";

export interface RecoveryDeps {
  readonly host: Host;
  /** Tells how far it is. The work goes on once the answer has settled, so that an end is heard in between. */
  readonly tell: TellProgress;
}

type TellProgress = (progress: RecoveryProgress) => Promise<void>;

const pagesPerTelling = 2048;
const sessionsPerTelling = 500;
function isOfLaterRelease({ header }: PageImage): boolean {
  return (header?.readUInt32BE(60) ?? 0) > newestSchemaVersion();
}

function notesOn(image: PageImage, store: RebuiltStore): string[] {
  const notes: string[] = [];
  const version = image.header?.readUInt32BE(60) ?? 0;
  if (!image.header)
    notes.push(
      "The first page is damaged; tables were told by their rows, and rows of deleted sessions may have come back.",
    );
  if (isOfLaterRelease(image))
    notes.push(
      `The store says that it has schema version ${version}; this release knows ${newestSchemaVersion()}. What a later one added is not brought.`,
    );
  for (const table of store.shapes.unread) notes.push(`Table ${table} is not brought.`);
  return notes;
}

function journalModeOf(image: PageImage): JournalMode {
  return image.header?.[18] === 1 && !image.wal ? "delete" : "wal";
}

async function readAll(walker: PageWalker, store: RebuiltStore, pageCount: number, tell: TellProgress): Promise<void> {
  for (let page = 1; page <= pageCount; page++) {
    walker.visit(page);
    store.step();
    if (page % pagesPerTelling === 0) await tell({ stage: "read", doneCount: page, totalCount: pageCount });
  }
  walker.finish();
  await tell({ stage: "read", doneCount: pageCount, totalCount: pageCount });
}

async function mendAll(store: RebuiltStore, findings: Findings, tell: TellProgress): Promise<void> {
  const { rows } = store;
  const totalCount = rows.get<{ count: number }>("SELECT count(*) AS count FROM session")?.count ?? 0;
  let doneCount = 0;
  for (let last = Number.MIN_SAFE_INTEGER; ;) {
    const session = rows.get<{ session_no: number; session_id: string }>(
      "SELECT session_no, session_id FROM session WHERE session_no > ? ORDER BY session_no LIMIT 1",
      last,
    );
    if (!session) break;
    last = session.session_no;
    new TranscriptMending(new RecoveredTranscript(rows, findings, session)).run();
    store.step();
    if (++doneCount % sessionsPerTelling === 0) await tell({ stage: "mend", doneCount, totalCount });
  }
}

interface Proof {
  readonly violations: readonly Violation[];
  readonly spool: RecoveryReport["spool"];
}

function withoutPlace({ sessionId, stepCount, damagedCount }: SpoolView): RecoveryReport["spool"][number] {
  return { session: sessionId, stepCount, damagedCount };
}

/** The proof: what was made opens as any store does, and keeps the rules of the contract. */
async function verifyAll(path: string, { host, tell }: RecoveryDeps): Promise<Proof> {
  const store = await openSqliteStore(path, { host });
  try {
    const violations: Violation[] = [];
    let doneCount = 0;
    let cursor: string | undefined;
    do {
      const page = await store.sessions.list({ limit: 200, ...(cursor === undefined ? {} : { cursor }) });
      for (const { sessionId } of page.sessions) {
        const records = await store.sessions.records(sessionId);
        if (records) violations.push(...verifyRecords(records));
        doneCount++;
      }
      await tell({ stage: "verify", doneCount, totalCount: doneCount });
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return { violations, spool: (await store.spool.waiting()).map(withoutPlace) };
  } finally {
    await store.close();
  }
}

async function rebuild(
  { source, output }: RecoveryRequest,
  files: SourceFiles,
  findings: Findings,
  deps: RecoveryDeps,
): Promise<{ readonly report: RecoveryReport; readonly store: RebuiltStore }> {
  const image = new PageImage(files);
  const store = new RebuiltStore(output, deps.host.random);
  const { tell } = deps;
  await tell({ stage: "read", doneCount: 0, totalCount: image.pageCount });
  const { rows, shapes } = store;
  const names = new SessionNames(rows);
  const keeper = new RowKeeper(rows, findings);
  const owners = new PageOwners(image);
  const walker = new PageWalker({ image, owners, shapes, keeper, names, findings });
  await readAll(walker, store, image.pageCount, tell);
  if (findings.foundCount === 0)
    throw storeError(
      "STORE_CORRUPT",
      `Could not recover the store ${source}: not one row of a store is in it. Nothing was made; is it the right file?`,
      { path: source },
    );
  if (!files.areUnchanged()) throw changedError(source);
  store.restoreSeeds();
  const spool = new BroughtSpool(source, deps.host.random, findings);
  mendRecords({ rows, findings, names, spooled: [...spool.steps()] });
  await mendAll(store, findings, tell);
  store.numberInputs();
  names.forget();
  findings.notes.push(...notesOn(image, store));
  store.finish(journalModeOf(image));
  spool.layBeside(partialPathOf(output));
  const { violations, spool: waiting } = await verifyAll(partialPathOf(output), deps);
  const { refusedRows, unreadPages, missingEntries, mends, unlistedCount, notes } = findings;
  const damagedWalFrameCount = image.wal?.damagedFrameCount ?? 0;
  const missingWalFrameCount = missingFrameCount(files, image.pageSize);
  const isLogWhole = damagedWalFrameCount + missingWalFrameCount === 0;
  const report: RecoveryReport = {
    source: {
      path: source,
      byteCount: files.byteCount,
      pageSize: image.pageSize,
      pageCount: image.pageCount,
      walFrameCount: image.wal?.usedFrameCount ?? 0,
      damagedWalFrameCount,
      missingWalFrameCount,
    },
    isComplete: findings.toldCount === 0 && isLogWhole && violations.length === 0 && !isOfLaterRelease(image),
    tables: findings.tables(shapes.brought),
    refusedRows,
    unreadPages,
    missingEntries,
    mends,
    unlistedCount,
    violations,
    spool: waiting,
    notes,
  };
  return { report, store };
}

function headerOf(source: string): FileHeader | undefined {
  const file = new OfflineFile(source);
  try {
    const header = headerIn(file.read(0, headerBytes));
    return typeof header === "string" ? undefined : header;
  } finally {
    file.close();
  }
}

/** Recovers the source into the output, which is named last of all; whoever calls removes the partial file on failure. */
export async function recover(request: RecoveryRequest, deps: RecoveryDeps): Promise<RecoveryReport> {
  const { source, output } = request;
  refuseUnfit(request);
  const findings = new Findings();
  findings.notes.push(...refuseOpen(source));
  const isForeign = isForeignLog(source, headerOf(source));
  if (isForeign) findings.notes.push(`${source}-wal belongs to another file that stood here before, and was not read.`);
  const files = new SourceFiles(source, { withoutLog: isForeign });
  try {
    refuseFull(output, files.byteCount);
    const { report, store } = await rebuild(request, files, findings, deps);
    refuseOpen(source);
    if (!files.areUnchanged()) throw changedError(source);
    store.publish();
    return { ...report, output };
  } finally {
    files.close();
  }
}
