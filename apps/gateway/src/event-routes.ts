import type { StateStore } from "@turnkeeper/state-store";
import { z } from "zod";
import type { EventStream } from "./event-stream.ts";
import { SessionReader } from "./events/session-reader.ts";
import type { ReaderStart } from "./events/session-reader.ts";
import { placeOf } from "./events/turn-place.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { Refusal } from "./refusal.ts";
import { defineRoute } from "./route.ts";
import type { Route } from "./route.ts";
import { sessionPath, unknownSession } from "./session-path.ts";

interface EventsQuery {
  readonly after?: string | undefined;
}

const eventsQuery: z.ZodType<EventsQuery> = z.strictObject({
  after: z
    .string()
    .optional()
    .describe("An event's id, as in Last-Event-ID, which wins; or `start`. Default: from the turn that runs now on."),
});

function startAfter(lastEventId: string | undefined, after: string | undefined): ReaderStart {
  const id = lastEventId ?? after;
  if (id === undefined || id === "") return "now";
  if (id === "start") return "everything";
  const place = placeOf(id);
  if (!place)
    throw new Refusal(400, "event_id_invalid", "That is no event id of this gateway; send the last one as it came.");
  return place;
}

/** Until the reader leaves. Where the store fails in the middle, the stream ends, and its reader comes back behind it. */
async function send(stream: EventStream, reader: SessionReader): Promise<void> {
  void stream.ended.then(() => reader.close());
  try {
    for await (const { event, id } of reader.events()) {
      stream.send(JSON.stringify(event), id);
      await stream.hasRoom();
    }
  } finally {
    stream.end();
  }
}

async function checkSession(store: StateStore, sessionId: string): Promise<void> {
  if (!(await store.sessions.read(sessionId))) throw unknownSession();
}

export function eventRoutes({ store, host, live, streams }: GatewayParts): readonly Route[] {
  const followSession = defineRoute({
    method: "GET",
    path: "/v1/sessions/{sessionId}/events",
    name: "followSession",
    summary: "Every turn of the session as events, wherever it runs; Last-Event-ID goes on without a gap or a repeat.",
    params: sessionPath,
    query: eventsQuery,
    headers: { "Last-Event-ID": "The id of the last event that came: the stream goes on behind it." },
    answers: { 200: { description: "Turn events, each with an id.", contentType: "text/event-stream" } },
    refusals: [404, 410, 429],
    handle: async ({ params: { sessionId }, query, headers }, reply) => {
      const lastEventId = headers["last-event-id"];
      const start = startAfter(typeof lastEventId === "string" ? lastEventId : undefined, query.after);
      using place = streams.place();
      await checkSession(store, sessionId);
      const reader = await SessionReader.open({ store, host, live }, sessionId, start);
      if (!reader) throw new Refusal(410, "event_gone", "The turn of that event is not in the store any more.");
      await send(place.open(reply), reader);
      return reply;
    },
  });
  return [followSession];
}
