import type { TurnEvent } from "@turnkeeper/agent-core";
import { expect, it } from "vitest";
import type { PlacedEvent } from "../src/events/placed-event.ts";
import { TurnReading } from "../src/events/turn-reading.ts";

const at = "2026-01-01T00:00:00.000Z";

function placed(turnId: string, fencingToken: number, text: string): PlacedEvent {
  const event: TurnEvent = { type: "text.delta", sessionId: "s", turnId, at, text };
  return { event, turnId, fencingToken, textBefore: 0, reasoningBefore: 0 };
}

it("a reading goes on to newer turns alone: of one that was before it nothing is told, however late that comes", () => {
  const reading = new TurnReading(4);
  const textOf = (event: PlacedEvent): unknown => (reading.take(event)?.event as { text?: string } | undefined)?.text;
  expect(textOf(placed("fourth", 4, "too late"))).toBeUndefined();
  expect(textOf(placed("fifth", 5, "now"))).toBe("now");
  expect(textOf(placed("fourth", 4, "too late"))).toBeUndefined();
  expect(textOf(placed("sixth", 6, "then"))).toBe("then");
  expect(textOf(placed("fifth", 5, "now, and more"))).toBeUndefined();
});
