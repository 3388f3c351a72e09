import { readRunningTurns, readSessionState, readTurnStatus, reapTurns } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";
import { z } from "zod";
import type { GatewayParts } from "./gateway-parts.ts";
import { pageQuery } from "./page-query.ts";
import { Refusal, retryLater } from "./refusal.ts";
import { defineRoute } from "./route.ts";
import type { Route } from "./route.ts";
import { entryJson, recordsJson, sessionJson } from "./json/session-json.ts";
import { runningTurnJson } from "./json/running-turn-json.ts";
import { sessionStateJson, turnStatusJson } from "./json/session-state-json.ts";
import { sessionPath, unknownSession } from "./session-path.ts";

const cursorInvalid = (): Refusal =>
  new Refusal(400, "cursor_invalid", "No page ended there; send `nextCursor` of the page before as it came.");

/** A page of the store; a cursor that the store did not make is the caller's mistake, not the store's. */
async function pageAfter<Page>(cursor: string | undefined, read: (cursor?: string) => Promise<Page>): Promise<Page> {
  try {
    return await read(cursor);
  } catch (error) {
    if (cursor !== undefined && CodedError.is(error, "STORE_CONTRACT")) throw cursorInvalid();
    throw error;
  }
}

/** The entry that the page before ended with. */
function seqOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (/^[1-9]\d{0,14}$/.test(cursor)) return Number(cursor);
  throw cursorInvalid();
}

const session = z.looseObject({
  sessionId: z.string(),
  title: z.string().optional(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  revision: z.int(),
  entryCount: z.int(),
});

const message = z.looseObject({
  role: z.enum(["user", "assistant", "tool", "summary", "notice"]),
  seq: z.int(),
  turnId: z.string(),
  at: z.iso.datetime(),
});

const nextCursor = z.string().optional();

export function sessionRoutes({ store, presence, endProcesses }: GatewayParts): readonly Route[] {
  const listSessions = defineRoute({
    method: "GET",
    path: "/v1/sessions",
    name: "listSessions",
    summary: "The sessions of the store, the last changed first.",
    query: pageQuery,
    answers: { 200: { description: "A page.", schema: z.object({ sessions: z.array(session), nextCursor }) } },
    handle: async ({ query: { limit, cursor } }) => {
      const page = await pageAfter(cursor, (after) =>
        store.sessions.list({ limit, ...(after === undefined ? {} : { cursor: after }) }),
      );
      return { ...page, sessions: page.sessions.map(sessionJson) };
    },
  });

  const readSession = defineRoute({
    method: "GET",
    path: "/v1/sessions/{sessionId}",
    name: "readSession",
    summary: "One session: what is known of it, the fate of its inputs, its turns.",
    params: sessionPath,
    answers: { 200: { description: "Without its messages.", schema: z.looseObject({ session: z.string() }) } },
    refusals: [404],
    handle: async ({ params }) => {
      const records = await store.sessions.records(params.sessionId, { withoutEntries: true });
      if (!records) throw unknownSession();
      return recordsJson(records);
    },
  });

  const listMessages = defineRoute({
    method: "GET",
    path: "/v1/sessions/{sessionId}/messages",
    name: "listMessages",
    summary: "The transcript, archived and late entries too, oldest first.",
    params: sessionPath,
    query: pageQuery,
    answers: { 200: { description: "A page.", schema: z.object({ messages: z.array(message), nextCursor }) } },
    refusals: [404],
    handle: async ({ params: { sessionId }, query: { limit, cursor } }) => {
      const afterSeq = seqOf(cursor);
      // One more than the page tells whether there is a next one.
      const { entries } = await store.transcript.load(sessionId, { all: true, afterSeq, first: limit + 1 });
      // Of what is not there nothing is there: only an empty page is asked about.
      if (entries.length === 0 && !(await store.sessions.read(sessionId))) throw unknownSession();
      const page = entries.slice(0, limit);
      const last = page.at(-1);
      const hasMore = entries.length > limit && last !== undefined;
      return { messages: page.map(entryJson), ...(hasMore ? { nextCursor: String(last.seq) } : {}) };
    },
  });

  const deleteSession = defineRoute({
    method: "DELETE",
    path: "/v1/sessions/{sessionId}",
    name: "deleteSession",
    summary: "Forgets a session and everything in it.",
    params: sessionPath,
    answers: { 204: { description: "It is gone." } },
    refusals: [404, 409],
    handle: async ({ params: { sessionId } }, reply) => {
      // A turn that its process left behind holds nothing: it is settled before the session counts as held.
      await reapTurns({ store, presence, ...(endProcesses ? { endProcesses } : {}) }, sessionId);
      const result = await store.sessions.delete(sessionId);
      if (result.kind === "unknown") throw unknownSession();
      if (result.kind === "held")
        throw new Refusal(409, "session_busy", "A turn runs on this session; stop it first.", { headers: retryLater });
      return reply.code(204).send();
    },
  });

  const whySession = defineRoute({
    method: "GET",
    path: "/v1/sessions/{sessionId}/why",
    name: "whySession",
    summary: "Who holds the session, its turn's last progress, its lease, what waits, and what happens next.",
    params: sessionPath,
    answers: {
      200: { description: "At this moment.", schema: z.looseObject({ session: z.string(), next: z.string() }) },
    },
    refusals: [404],
    handle: async ({ params: { sessionId } }) => {
      if (!(await store.sessions.read(sessionId))) throw unknownSession();
      const state = await readSessionState({ store, presence }, sessionId);
      const startOne = `start one with: POST /v1/sessions/${sessionId}/turns`;
      return sessionStateJson(state, startOne);
    },
  });

  const listTurns = defineRoute({
    method: "GET",
    path: "/v1/turns",
    name: "listTurns",
    summary: "Every turn that runs on this store, in whatever process, oldest first.",
    answers: { 200: { description: "At this moment.", schema: z.object({ turns: z.array(z.looseObject({})) }) } },
    handle: async () => {
      const running = await readRunningTurns({ store, presence });
      const turns = await Promise.all(
        running.map(async (one) => {
          const status = one.lease && (await readTurnStatus({ presence }, one.lease.holder));
          const isOfTurn = status?.turnId === one.turn.turnId;
          return { ...runningTurnJson(one), progress: isOfTurn && status ? turnStatusJson(status) : null };
        }),
      );
      return { turns };
    },
  });
  return [listSessions, readSession, listMessages, deleteSession, whySession, listTurns];
}
