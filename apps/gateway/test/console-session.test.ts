import { createAgent, defineTool } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import type { ScriptedStep } from "@turnkeeper/agent-core/testing";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { GatewayClient } from "../console/src/gateway-client.ts";
import { OpenBoard } from "../console/src/open-board.ts";
import { OpenSession } from "../console/src/open-session.ts";
import { transcriptBlocks } from "../console/src/transcript-blocks.ts";
import { startGateway } from "../src/index.ts";
import { openGateway, post, until } from "./inside/open-gateway.ts";

const closing: { close(): void }[] = [];
afterEach(() => {
  for (const one of closing.splice(0)) one.close();
});

function clientOf(url: string): GatewayClient {
  const tokens = { read: () => undefined, ask: () => Promise.reject(new Error("nobody is there")) };
  return new GatewayClient({ fetch, tokens, baseUrl: `${url}/` });
}

/** Resolves once what is looked at says so; asked again whenever it has changed. */
class Watcher {
  #waiting: (() => void)[] = [];
  changed = (): void => {
    for (const wake of this.#waiting.splice(0)) wake();
  };
  async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

interface Looked {
  readonly session: OpenSession;
  readonly happened: string[];
  shown(): readonly string[];
  shows(texts: readonly string[]): Promise<void>;
  until(isTrue: () => boolean): Promise<void>;
}

/** As the page looks at a session, without the page. */
function lookAt(url: string, sessionId: string): Looked {
  const watcher = new Watcher();
  const happened: string[] = [];
  const session = new OpenSession({ client: clientOf(url), host: systemHost }, sessionId, {
    changed: watcher.changed,
    happened: ({ text }) => happened.push(text),
    deleted: () => happened.push("deleted"),
  });
  closing.push(session);
  const shown = (): readonly string[] =>
    transcriptBlocks(session.conversation, session.known?.why).map((block) =>
      block.kind === "call" ? `${block.name} ${block.state}` : block.text,
    );
  const until = (isTrue: () => boolean): Promise<void> => watcher.until(isTrue);
  return { session, happened, shown, until, shows: (texts) => until(() => shown().join("|") === texts.join("|")) };
}

describe("a session that is looked at", () => {
  it("begins with its first message, and two who look see the same", async () => {
    const { url } = await openGateway([{ text: "Good morning." }, { text: "Good night." }]);
    const one = lookAt(url, "s");
    await one.until(() => one.session.isNew);
    one.session.send("Hi", "wait");
    await one.shows(["Hi", "Good morning."]);
    const other = lookAt(url, "s");
    await other.shows(["Hi", "Good morning."]);
    other.session.send("Bye", "wait");
    await one.shows(["Hi", "Good morning.", "Bye", "Good night."]);
    await other.until(() => other.session.unanswered.length === 0 && !other.session.isRunning);
    // Of its own message the end is told however early it came, and once.
    expect(new Set(one.happened)).toEqual(new Set(["Turn answered."]));
    expect(one.happened.length).toBeLessThanOrEqual(2);
  });

  it("tells the queue: own messages with what became of them, those of others by their text", async () => {
    const { url, store } = await openGateway([{ silentAfter: "…" }, { text: "two" }, { text: "three" }]);
    void post(`${url}/v1/sessions/s/turns`, { input: "one" });
    await until(async () => (await store.turns.running("s")).length > 0);
    void post(`${url}/v1/sessions/s/turns`, { input: "from elsewhere", onBusy: "queue" });
    await until(async () => (await store.inbox.pending("s")).length > 0);
    const { session, until: becomes, shown } = lookAt(url, "s");
    session.send("from here", "queue");
    await becomes(() => session.queued.length === 1 && session.unanswered[0]?.state.kind === "ended");
    expect(session.queued.map(({ text }) => text)).toEqual(["from elsewhere"]);
    expect(session.unanswered.map(({ message }) => message.text)).toEqual(["from here"]);
    await session.stop(true);
    await becomes(() => session.unanswered.length === 0 && session.known?.why.pending.length === 0);
    await becomes(() => shown().includes("three"));
    const told = ["one", "from elsewhere", "two", "from here", "three"];
    expect(shown().filter((text) => told.includes(text))).toEqual(told);
  });

  it("says what was refused, once, until somebody has read it", async () => {
    const { url } = await openGateway([{ text: "one" }]);
    const { session, happened, shows } = lookAt(url, "s");
    session.send("Hi", "wait");
    await shows(["Hi", "one"]);
    await session.stop(false);
    expect(session.problem).toMatchObject({ status: 404, code: "nothing_running" });
    expect(happened.filter((text) => text.includes("nothing_running"))).toHaveLength(1);
    session.forgetProblem();
    expect(session.problem).toBeUndefined();
  });

  it("that is deleted elsewhere says so once, keeps what was read, and begins anew with a message", async () => {
    const { url } = await openGateway([{ text: "one" }, { text: "two" }]);
    const { session, happened, shows, shown, until: becomes } = lookAt(url, "s");
    session.send("Hi", "wait");
    await shows(["Hi", "one"]);
    await becomes(() => session.unanswered.length === 0 && session.known !== undefined);
    expect((await fetch(`${url}/v1/sessions/s`, { method: "DELETE" })).status).toBe(204);
    await becomes(() => session.isDeleted);
    expect([session.isNew, session.known, shown()]).toEqual([false, undefined, ["Hi", "one"]]);
    session.send("Again", "wait");
    await shows(["Again", "two"]);
    expect(session.isDeleted).toBe(false);
    expect(happened.filter((text) => /deleted/.test(text))).toEqual(["The session was deleted.", "deleted"]);
  });

  it("is deleted where nothing runs, and else says why not", async () => {
    const { url, store } = await openGateway([{ silentAfter: "half" }]);
    const { session, shows, until: becomes } = lookAt(url, "s");
    session.send("Hi", "wait");
    await shows(["Hi", "half"]);
    expect(await session.delete()).toBe(false);
    expect(session.problem).toMatchObject({ status: 409, code: "session_busy" });
    await session.stop(true);
    await becomes(() => !session.isRunning && session.unanswered.length === 0);
    expect(await session.delete()).toBe(true);
    expect([session.isDeleted, await store.sessions.read("s")]).toEqual([true, undefined]);
    expect(await session.delete()).toBe(true);
  });

  it("asks about calls, and goes on with the turn once the last is answered", async () => {
    const write = defineTool({
      name: "write_note",
      description: "Writes.",
      input: z.object({}),
      needsApproval: true,
      execute: () => Promise.resolve("written"),
    });
    const calls = ["first", "second"].map((id) => ({ id, name: "write_note", input: {} }));
    const { url } = await openGateway([{ calls, text: "Two notes." }, { text: "Done." }], {}, { tools: [write] });
    const { session, shows } = lookAt(url, "s");
    session.send("Hi", "wait");
    await shows(["Hi", "Two notes.", "write_note asks", "write_note asks"]);
    await session.answer("first", "deny");
    await shows(["Hi", "Two notes.", "write_note denied", "write_note asks"]);
    await session.answer("second", "allow");
    await shows(["Hi", "Two notes.", "write_note denied", "write_note ok", "Done."]);
  });

  it("shows the end of a long conversation first, and what came earlier when it is asked for", async () => {
    const steps = Array.from({ length: 130 }, (_none, index): ScriptedStep => ({ text: `answer ${index}` }));
    const { url, agent } = await openGateway(steps);
    for (let index = 0; index < 130; index++) await agent.run("s", `question ${index}`).result;
    const { session, until: becomes } = lookAt(url, "s");
    await becomes(() => session.conversation.messages.length === 200);
    expect(session.conversation.messages.map(({ seq }) => seq)).toEqual(
      Array.from({ length: 200 }, (_n, at) => at + 61),
    );
    expect(session.hasEarlier).toBe(true);
    await session.readEarlier();
    expect(session.conversation.messages.map(({ seq }) => seq)).toEqual(
      Array.from({ length: 260 }, (_n, at) => at + 1),
    );
    expect(session.hasEarlier).toBe(false);
  });
});

describe("the board", () => {
  it("shows what runs while it runs, and the session it ran on", async () => {
    const store = createMemoryStore({ host: systemHost });
    const model = scriptedModel([{ silentAfter: "…" }]);
    const agent = await createAgent({ model, store });
    await using gateway = await startGateway({ agent, store }, { port: 0, drainMs: 0 });
    const watcher = new Watcher();
    const board = new OpenBoard(
      { client: clientOf(gateway.url), host: systemHost },
      { changed: watcher.changed, found: () => {} },
    );
    closing.push(board);
    void post(`${gateway.url}/v1/sessions/s/turns`, { input: "Hi" });
    await watcher.until(() => board.turns?.[0]?.progress != null && board.sessions.length === 1);
    expect(board.turns).toMatchObject([{ session: "s", pid: process.pid, state: "alive", pendingCount: 0 }]);
    expect(board.happenings).toEqual([]);
    await post(`${gateway.url}/v1/sessions/s/stop`, {});
    await watcher.until(() => board.turns?.length === 0);
    expect(board.sessions).toMatchObject([{ sessionId: "s", title: "Hi" }]);
  });
});
