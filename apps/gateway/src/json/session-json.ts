import type {
  AskedCall,
  AwaitedChild,
  Entry,
  InputRecord,
  LastEntry,
  SessionRecord,
  SessionRecords,
  TurnRecord,
} from "@turnkeeper/state-store";
import { callsOf, entryText } from "@turnkeeper/state-store";
import { toldEnd } from "../told-end.ts";

/** A session's records as other programs read them: ISO times, and only what an outsider can use. */

export const isoTime = (ms: number): string => new Date(ms).toISOString();

function lastEntryJson({ atMs, ...facts }: LastEntry): Record<string, unknown> {
  return { at: isoTime(atMs), ...facts };
}

export function sessionJson(session: SessionRecord): Record<string, unknown> {
  const { sessionId, createdAtMs, updatedAtMs, revision, entryCount, title, lastEntry, totals, parent } = session;
  return {
    sessionId,
    ...(title === undefined ? {} : { title }),
    createdAt: isoTime(createdAtMs),
    updatedAt: isoTime(updatedAtMs),
    revision,
    entryCount,
    ...(lastEntry ? { lastEntry: lastEntryJson(lastEntry) } : {}),
    totals,
    ...(parent ? { parent } : {}),
  };
}

/** `end` is null until the input has its durable end; `at` is when it got it, else when it was offered. */
export function inputJson(input: InputRecord): Record<string, unknown> {
  const { inputId, state } = input;
  const isSettled = input.state === "settled";
  const turnId = input.state === "pending" ? undefined : input.turnId;
  return {
    inputId,
    end: isSettled ? input.end : null,
    at: isoTime(isSettled ? input.endedAtMs : input.offeredAtMs),
    state,
    ...(turnId === undefined ? {} : { turnId }),
    text: input.text,
    ...(input.child ? { child: input.child } : {}),
  };
}

function bodyJson({ body }: Entry): Record<string, unknown> {
  switch (body.role) {
    case "user":
      return {
        text: body.text,
        ...(body.inputId === undefined ? {} : { inputId: body.inputId }),
        ...(body.child === undefined ? {} : { child: body.child }),
      };
    case "assistant": {
      const toolCalls = callsOf(body).map(({ callId, name, input }) => ({ callId, name, input }));
      const providerTools = body.parts.flatMap((part) =>
        part.type === "provider-tool"
          ? [{ callId: part.callId, name: part.name, input: part.input, output: part.output }]
          : [],
      );
      const reasoning = body.parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
      return {
        text: entryText(body),
        ...(reasoning === "" ? {} : { reasoning }),
        ...(toolCalls.length === 0 ? {} : { toolCalls }),
        ...(providerTools.length === 0 ? {} : { providerTools }),
        ...(body.partial ? { partial: true } : {}),
        ...(body.model === undefined ? {} : { model: body.model }),
        ...(body.usage === undefined ? {} : { usage: body.usage }),
      };
    }
    case "tool":
      return {
        callId: body.callId,
        name: body.name,
        status: body.status,
        output: body.output,
        ...(body.note === undefined ? {} : { note: body.note }),
        ...(body.repeats === undefined ? {} : { repeats: body.repeats }),
        ...(body.receipt === undefined ? {} : { receipt: body.receipt }),
      };
    case "summary":
    case "notice":
      return { text: body.text };
  }
}

export function entryJson(entry: Entry): Record<string, unknown> {
  return {
    role: entry.body.role,
    ...bodyJson(entry),
    seq: entry.seq,
    turnId: entry.turnId,
    at: isoTime(entry.atMs),
    ...(entry.archived ? { archived: true } : {}),
    ...(entry.late ? { late: true } : {}),
  };
}

/** The subagent that a call waits for; `endedAt` is null until it has ended. */
export function subagentJson({ sessionId, sinceMs, endedAtMs }: AwaitedChild): Record<string, unknown> {
  return { session: sessionId, since: isoTime(sinceMs), endedAt: endedAtMs === undefined ? null : isoTime(endedAtMs) };
}

/** A call that somebody is or was asked about; with `awaits` its client runs it, and its result is waited for. */
export function askedJson({
  callId,
  name,
  askedAtMs,
  resultUntilMs,
}: Omit<AskedCall, "answer">): Record<string, unknown> {
  const result = resultUntilMs === undefined ? {} : { awaits: "result", until: isoTime(resultUntilMs) };
  return { callId, name, at: isoTime(askedAtMs), ...result };
}

export function turnJson(record: TurnRecord): Record<string, unknown> {
  const turn = record.state === "ended" ? toldEnd(record) : record;
  const { turnId, state, startedAtMs, fencingToken, holder } = turn;
  const ended =
    turn.state === "ended"
      ? {
          outcome: turn.outcome,
          endedAt: isoTime(turn.endedAtMs),
          ...(turn.reason === undefined ? {} : { reason: turn.reason }),
          ...(turn.detail === undefined ? {} : { detail: turn.detail }),
          ...(turn.stop === undefined ? {} : { by: turn.stop.by }),
          ...(turn.usage === undefined ? {} : { usage: turn.usage }),
        }
      : {};
  const approvals = (turn.approvals ?? []).map(({ answer, child, ...call }) => ({
    ...askedJson(call),
    ...(answer ? { decision: answer.decision, by: answer.by, answeredAt: isoTime(answer.atMs) } : {}),
    ...(child ? { subagent: subagentJson(child) } : {}),
  }));
  return {
    turnId,
    state,
    startedAt: isoTime(startedAtMs),
    fencingToken,
    pid: holder.pid,
    host: holder.host,
    ...(approvals.length === 0 ? {} : { approvals }),
    ...ended,
  };
}

/** `sessions show ID --json`, without its entries. */
export function recordsJson(records: SessionRecords): Record<string, unknown> {
  const { sessionId, ...facts } = sessionJson(records.session);
  return {
    session: sessionId,
    ...facts,
    inputs: records.inputs.map(inputJson),
    turns: records.turns.map(turnJson),
  };
}
