import type { Entry, SessionRecords, StateStore } from "@turnkeeper/state-store";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { counted, countText } from "../display/count-text.ts";
import { printable, styleOf } from "../display/style.ts";
import { entryText, inputText, spoolLines } from "../display/transcript-text.ts";
import { exitCode } from "../exit-code.ts";
import { withStore } from "../observer.ts";
import { entryJson, recordsJson } from "@turnkeeper/gateway/json";
import { entriesOf } from "../transcript-windows.ts";
import { sessionIdOf, unknownSession } from "./session-command.ts";
import { jsonLine } from "../json-line.ts";

export interface ShowFlags extends CommonFlags {
  /** The newest so many entries alone. */
  readonly last?: number;
  /** Entries before this one: where the page behind ended. */
  readonly before?: number;
}

interface Shown {
  readonly entries: AsyncIterable<Entry> | Iterable<Entry>;
  /** Entries older than those that are shown lie before this one. */
  readonly nextBefore?: number;
}

async function shownOf(store: StateStore, sessionId: string, { last, before }: ShowFlags): Promise<Shown> {
  const range = before === undefined ? {} : { beforeSeq: before };
  if (last === undefined) return { entries: entriesOf(store, sessionId, range) };
  // One more than is shown tells whether there are older ones.
  const { entries } = await store.transcript.load(sessionId, { ...range, all: true, limit: last + 1 });
  const shown = entries.slice(-last);
  const [oldest] = shown;
  return entries.length > last && oldest ? { entries: shown, nextBefore: oldest.seq } : { entries: shown };
}

/** One JSON object, written as it is read: a long session is never one string. */
async function showJson(io: CommandIo, records: SessionRecords, { entries, nextBefore }: Shown): Promise<void> {
  const head = jsonLine({ ...recordsJson(records), ...(nextBefore === undefined ? {} : { nextBefore }) });
  io.stdout.write(`${head.slice(0, -1)},"entries":[`);
  let separator = "";
  for await (const entry of entries) {
    io.stdout.write(`${separator}${jsonLine(entryJson(entry))}`);
    separator = ",";
    await io.stdout.ready();
    if (io.stdout.isGone) return;
  }
  io.stdout.line("]}");
}

function summaryText({ session }: SessionRecords): string {
  const { title, totals, parent } = session;
  const counts = [
    counted(totals.turnCount, "turn"),
    counted(totals.toolCallCount, "tool call"),
    `${counted(totals.inputTokens, "token")} in`,
    `${countText(totals.outputTokens)} out`,
  ];
  const of = parent ? [`subagent of session ${parent.sessionId}`] : [];
  return [...(title === undefined ? [] : [printable(title)]), ...of, counts.join(", ")].join(" · ");
}

/** `turnkeeper sessions show ID`. */
export async function showSession(io: CommandIo, id: string, flags: ShowFlags): Promise<number> {
  const sessionId = await sessionIdOf(id);
  return withStore(io, flags, async (store) => {
    const records = await store.sessions.records(sessionId, { withoutEntries: true });
    if (!records) throw unknownSession(sessionId);
    const shown = await shownOf(store, sessionId, flags);
    if (flags.json) {
      await showJson(io, records, shown);
      return exitCode.ok;
    }
    const style = styleOf(io.stdout.hasColour);
    io.stderr.line(summaryText(records));
    for await (const entry of shown.entries) {
      io.stdout.line(entryText(entry, style, io.stdout.columns));
      await io.stdout.ready();
      if (io.stdout.isGone) return exitCode.ok;
    }
    if (flags.before === undefined)
      for (const input of records.inputs)
        if (input.state !== "settled" || input.end !== "answered")
          io.stdout.line(style.dim(inputText(input, records.turns)));
    for (const line of spoolLines(await store.spool.waiting(sessionId))) io.stdout.line(style.dim(line));
    if (shown.nextBefore !== undefined)
      io.stderr.line(`Earlier: --last ${flags.last ?? ""} --before ${shown.nextBefore}`);
    return exitCode.ok;
  });
}
