import type { TurnEvent } from "@turnkeeper/agent-core";
import type { Cancel } from "@turnkeeper/kernel";
import { EventParser } from "./event-parser.ts";
import type { PageHost } from "./page-host.ts";

/** The gateway says something every 15 s, if only a comment; three of them missing is a connection that died unseen. */
const silenceMs = 45_000;

export interface ReadEvent {
  readonly event: TurnEvent;
  readonly id: string | undefined;
}

export interface StreamReading {
  readonly host: PageHost;
  readonly onEvent: (read: ReadEvent) => void;
  /** Aborted with the reader's own signal: cuts the response off. */
  readonly controller: AbortController;
}

/**
 * Reads the turn events of a response to its end, however it ends; answers how long the server asks to wait before a new
 * connection. A stream that is silent for too long is cut.
 */
export async function readTurnEvents(
  response: Response,
  { host, onEvent, controller }: StreamReading,
): Promise<number | undefined> {
  const parser = new EventParser();
  let cancelCut: Cancel = () => {};
  const awaitWord = (): void => {
    cancelCut();
    cancelCut = host.timers.after(silenceMs, () => controller.abort());
  };
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  try {
    awaitWord();
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true };
      if (done) return parser.retryMs;
      awaitWord();
      for (const { id, data } of parser.feed(decoder.decode(value, { stream: true })))
        onEvent({ event: JSON.parse(data) as TurnEvent, id });
    }
  } catch (error) {
    // Cut off, by either side. What cannot be read as an event is cut off too, and read again.
    if (error instanceof SyntaxError) controller.abort();
    return parser.retryMs;
  } finally {
    cancelCut();
  }
}
