import { CodedError } from "@turnkeeper/kernel";
import { describe, expect, it } from "vitest";
import { openGateway, post } from "./inside/open-gateway.ts";
import type { OpenedGateway } from "./inside/open-gateway.ts";

const place = "/srv/turns/state.db";
const full = (): Promise<never> =>
  Promise.reject(new CodedError("STORE_FULL", `Could not write to the store ${place}: the disk is full.`));

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly code?: string;
  readonly detail?: string;
}

async function openLogged(): Promise<OpenedGateway & { readonly lines: LogLine[] }> {
  const lines: LogLine[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as LogLine);
  const opened = await openGateway([{ text: "Well." }], { log: { level: "info", write } });
  return { ...opened, lines };
}

const failuresOf = (lines: readonly LogLine[]): readonly LogLine[] =>
  lines.filter(({ msg }) => msg === "the store failed");

const message = { role: "user", content: "Hi" };
const routes: readonly (readonly [string, unknown, Record<string, string>])[] = [
  ["/v1/sessions/s/turns", { input: "Hi" }, {}],
  ["/v1/chat/completions", { model: "scripted/model", messages: [message] }, { "x-session-id": "s" }],
  ["/v1/chat/completions", { model: "scripted/model", messages: [message], stream: true }, { "x-session-id": "s" }],
  ["/v1/responses", { model: "scripted/model", input: "Hi" }, { "x-session-id": "s" }],
];

describe("a store that takes no message", () => {
  it.each(routes)("is 503 by its code on %s, and the log alone says where it lies", async (path, body, headers) => {
    const { url, store, lines } = await openLogged();
    store.inbox.offer = full;
    const response = await post(url + path, body, headers);
    const text = await response.text();
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
    expect(text).toContain('"store_full"');
    expect(text).not.toContain(place);
    expect(failuresOf(lines)).toMatchObject([{ level: 50, code: "STORE_FULL" }]);
    expect(failuresOf(lines)[0]?.detail).toContain(place);
  });

  it("is told as the end of an event stream, without its place", async () => {
    const { url, store } = await openLogged();
    store.inbox.offer = full;
    const response = await post(`${url}/v1/sessions/s/turns`, { input: "Hi" }, { accept: "text/event-stream" });
    const text = await response.text();
    expect(text).toContain('"reason":"STORE_FULL"');
    expect(text).not.toContain(place);
  });
});

describe("a store that takes no end of a turn", () => {
  it("is told by its code, whoever reads the turn, and is logged once", async () => {
    const { url, store, lines } = await openLogged();
    store.turns.end = full;
    // A lease that is released takes what was spooled with it.
    store.leases.release = full;
    const headers = { accept: "text/event-stream" };
    const told = await (await post(`${url}/v1/sessions/s/turns`, { input: "Hi" }, headers)).text();
    expect(told).toContain('"reason":"STORE_FULL"');
    expect(told).not.toContain(place);
    expect(failuresOf(lines)).toMatchObject([{ level: 50, code: "STORE_FULL" }]);
  });
});
