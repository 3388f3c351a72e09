import type { TurnEvent } from "@turnkeeper/agent-core";

export interface ReceivedEvent {
  readonly id: string;
  readonly event: TurnEvent;
}

/** Reads server-sent events from a response until `isEnough`, then leaves; or until the stream ends. */
export async function readEvents(
  response: Response,
  isEnough: (event: TurnEvent, all: readonly ReceivedEvent[]) => boolean = () => false,
): Promise<ReceivedEvent[]> {
  if (response.status !== 200 || !response.body) throw new Error(`${response.status}: ${await response.text()}`);
  const events: ReceivedEvent[] = [];
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return events;
    text += value;
    // A large event comes in many pieces, none of which ends it.
    if (!value.includes("\n")) continue;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(
        block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      );
      const data = fields.get("data");
      if (data === undefined) continue;
      const event = JSON.parse(data) as TurnEvent;
      events.push({ id: fields.get("id") ?? "", event });
      if (!isEnough(event, events)) continue;
      await reader.cancel();
      return events;
    }
  }
}

export const isFinished = (event: TurnEvent): boolean => event.type === "turn.finished";

export const openStream = (url: string, lastEventId?: string): Promise<Response> =>
  fetch(url, { headers: lastEventId === undefined ? {} : { "last-event-id": lastEventId } });

/** What a client knows after these events: what was said once is in it once, in order. */
export function toldBy(events: readonly { readonly event: TurnEvent }[]): readonly unknown[] {
  const told: unknown[] = [];
  let [text, reasoning] = ["", ""];
  for (const { event } of events) {
    if (event.type === "text.delta") text += event.text;
    else if (event.type === "reasoning.delta") reasoning += event.text;
    else if (event.type === "tool.started") told.push([event.type, event.callId, text.length, reasoning.length]);
    else if (event.type === "tool.finished")
      told.push([event.type, event.callId, event.output, text.length, reasoning.length]);
    else if (event.type === "turn.started") told.push([event.type, event.turnId]);
    else if (event.type === "turn.finished") told.push([event.type, event.outcome, event.text, text, reasoning]);
  }
  return told;
}
