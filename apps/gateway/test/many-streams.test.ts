import { expect, it } from "vitest";
import { readEvents, toldBy } from "./inside/event-client.ts";
import { openGateway, post } from "./inside/open-gateway.ts";

const streamCount = 500;

it("five hundred turns that stream at once lose no event", async () => {
  const text = "one two three four five six seven eight nine ten";
  const { url, store } = await openGateway(Array.from({ length: streamCount }, () => ({ text })));
  const streams = Array.from({ length: streamCount }, async (_none, index) =>
    readEvents(await post(`${url}/v1/sessions/s${index}/turns`, { input: "Hi" }, { accept: "text/event-stream" })),
  );
  for (const events of await Promise.all(streams)) {
    expect(toldBy(events).at(-1)).toEqual(["turn.finished", "answered", text, text, ""]);
    expect(events.filter(({ event }) => event.type === "turn.finished")).toHaveLength(1);
  }
  expect(await store.turns.running()).toEqual([]);
  expect(await (await fetch(`${url}/metrics`)).text()).toContain("turnkeeper_event_streams_dropped_total 0");
});
