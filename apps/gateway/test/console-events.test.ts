import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventParser } from "../console/src/event-parser.ts";
import type { ServerEvent } from "../console/src/event-parser.ts";

function parsed(chunks: readonly string[]): { events: readonly ServerEvent[]; retryMs: number | undefined } {
  const parser = new EventParser();
  const events = chunks.flatMap((chunk) => [...parser.feed(chunk)]);
  return { events, retryMs: parser.retryMs };
}

describe("server-sent events", () => {
  it("have the last id that was named, and their lines of data as one text", () => {
    expect(parsed(["retry: 1000\nid: a\ndata: one\ndata: two\n\n", ":\n\n", "data:three\n\n"])).toEqual({
      events: [
        { id: "a", data: "one\ntwo" },
        { id: "a", data: "three" },
      ],
      retryMs: 1000,
    });
  });

  it.each([
    ["a comment", ": still here\n\n"],
    ["an id alone", "id: b\n\n"],
    ["an unknown field", "event-like: x\n\n"],
    ["an event without its end", "data: half\n"],
    ["a retry that is no number", "retry: soon\n\n"],
  ])("are none: %s", (_what, text) => {
    expect(parsed([text])).toEqual({ events: [], retryMs: undefined });
  });

  it("are the same however the text is cut, and whatever ends its lines", () => {
    const lineEnd = fc.constantFrom("\n", "\r\n", "\r");
    const event = fc.record({ id: fc.stringMatching(/^[a-z0-9:]{1,8}$/), data: fc.stringMatching(/^[ -~]{1,20}$/) });
    let cutCount = 0;
    fc.assert(
      fc.property(
        fc.array(event, { minLength: 1 }),
        lineEnd,
        fc.array(fc.nat(), { maxLength: 12 }),
        (all, end, cuts) => {
          const text = all.map(({ id, data }) => `id: ${id}${end}data: ${data}${end}${end}`).join("");
          // What follows shows that the last line has ended.
          const whole = `${text}:${end}`;
          const places = [...new Set([0, ...cuts.map((cut) => cut % whole.length), whole.length])].toSorted(
            (a, b) => a - b,
          );
          cutCount += places.length - 2;
          const chunks = places.slice(1).map((place, index) => whole.slice(places[index], place));
          expect(parsed(chunks).events).toEqual(all);
        },
      ),
    );
    expect(cutCount).toBeGreaterThan(100);
  });
});
