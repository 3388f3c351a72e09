import type { TurnEvent, TurnEventBody } from "@turnkeeper/agent-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { afterEvent, emptyConversation, withMessages, withRecords } from "../console/src/conversation.ts";
import type { Conversation } from "../console/src/conversation.ts";
import type { Message, SessionWhy } from "../console/src/gateway-json.ts";
import { endSentence, transcriptBlocks } from "../console/src/transcript-blocks.ts";
import type { Block } from "../console/src/transcript-blocks.ts";
import { eventIdOf, startOf, TurnProgress } from "../src/events/turn-place.ts";

const at = "2026-01-01T00:00:00.000Z";

/** A turn as the gateway tells it: every event with the id of the place behind it. */
function teller(turnId: string): (conversation: Conversation, body: TurnEventBody) => Conversation {
  const progress = new TurnProgress(startOf(turnId));
  return (conversation, body) => {
    const event: TurnEvent = { ...body, sessionId: "s", turnId, at };
    return afterEvent(conversation, event, eventIdOf(progress.tell(event)));
  };
}

const message = (seq: number, rest: Partial<Message> & Pick<Message, "role">): Message => ({
  seq,
  turnId: "t1",
  at,
  ...rest,
});

const words = (blocks: readonly Block[], kind: Block["kind"]): string =>
  blocks.flatMap((block) => (block.kind === kind && "text" in block ? [block.text] : [])).join("");

const started: TurnEventBody = { type: "turn.started", fencingToken: 1 };
const delta = (text: string): TurnEventBody => ({ type: "text.delta", text });
const finished = (rest: object = {}): TurnEventBody => ({
  type: "turn.finished",
  outcome: "answered",
  text: "",
  ...rest,
});

describe("a conversation", () => {
  it("shows words as they come, and each once when they are stored too", () => {
    const tell = teller("t1");
    let seen = withMessages(emptyConversation, [message(1, { role: "user", text: "Hi", inputId: "i" })]);
    for (const body of [started, delta("Good "), delta("morning.")]) seen = tell(seen, body);
    expect(transcriptBlocks(seen, undefined)).toMatchObject([
      { kind: "user", text: "Hi" },
      { kind: "answer", text: "Good morning.", isLive: true },
    ]);
    seen = withMessages(seen, [message(2, { role: "assistant", text: "Good morning." })]);
    expect(words(transcriptBlocks(seen, undefined), "answer")).toBe("Good morning.");
    seen = tell(seen, finished());
    expect(transcriptBlocks(seen, undefined)).toMatchObject([{ kind: "user" }, { kind: "answer", key: "answer 2" }]);
  });

  it("takes back what came of a request that is made again", () => {
    const tell = teller("t1");
    let seen = tell(emptyConversation, started);
    seen = tell(seen, { type: "reasoning.delta", text: "Hm." });
    seen = tell(seen, delta("\n"));
    seen = tell(seen, { type: "model.retry", attempt: 1, delayMs: 10, reason: "it was cut off" });
    expect(transcriptBlocks(seen, undefined)).toMatchObject([{ kind: "note" }]);
    seen = tell(seen, { type: "reasoning.delta", text: "Well." });
    seen = tell(seen, delta("Good morning."));
    expect(transcriptBlocks(seen, undefined)).toMatchObject([
      { kind: "note", text: "The model is asked again, attempt 2: it was cut off" },
      { kind: "thought", text: "Well." },
      { kind: "answer", text: "Good morning." },
    ]);
  });

  it("shows a call while it runs, and its result from whichever tells it first", () => {
    const tell = teller("t1");
    let seen = tell(emptyConversation, started);
    seen = tell(seen, { type: "tool.started", callId: "c", name: "shell", input: { command: "ls" } });
    expect(transcriptBlocks(seen, undefined)).toMatchObject([{ kind: "call", callId: "c", state: "running" }]);
    seen = tell(seen, { type: "tool.finished", callId: "c", name: "shell", ok: false, output: "no", durationMs: 1200 });
    const told = transcriptBlocks(seen, undefined);
    expect(told).toMatchObject([{ kind: "call", state: "error", output: "no", durationMs: 1200 }]);
    seen = withMessages(seen, [
      message(1, { role: "assistant", toolCalls: [{ callId: "c", name: "shell", input: { command: "ls" } }] }),
      message(2, { role: "tool", callId: "c", name: "shell", status: "interrupted", output: "gone" }),
    ]);
    const stored = transcriptBlocks(seen, undefined);
    expect(stored).toMatchObject([{ kind: "call", state: "interrupted", output: "gone" }]);
    // It keeps its place in the page, and whoever had opened it keeps reading.
    expect(stored.map(({ key }) => key)).toEqual(told.map(({ key }) => key));
  });

  it("asks about a call that waits for approval, and only while it does", () => {
    const call = message(1, { role: "assistant", toolCalls: [{ callId: "c", name: "shell", input: {} }] });
    const seen = withMessages(emptyConversation, [call]);
    const why = (decision: "allow" | "deny" | null, more = {}): SessionWhy =>
      ({
        turn: { turnId: "t1", asks: [{ callId: "c", name: "shell", at, decision, ...more }] },
      }) as unknown as SessionWhy;
    expect(transcriptBlocks(seen, why("deny"))).toMatchObject([{ state: "denied" }]);
    expect(transcriptBlocks(seen, why(null))).toMatchObject([{ state: "asks" }]);
    expect(transcriptBlocks(seen, why(null, { awaits: "result" }))).toMatchObject([{ state: "awaits-result" }]);
    expect(transcriptBlocks(seen, why("allow"))).toMatchObject([{ state: "allowed" }]);
  });

  it("says how a turn ended, stored or told, where that was not with an answer", () => {
    const tell = teller("t1");
    let seen = tell(emptyConversation, started);
    seen = tell(seen, { type: "turn.stalled", idleMs: 600_000, lastProgress: "model" });
    seen = tell(seen, finished({ outcome: "interrupted", reason: "stalled", by: "watchdog" }));
    expect(transcriptBlocks(seen, undefined)).toMatchObject([
      { kind: "note", tone: "warn", text: "No progress for 10 min; the last was: model." },
      { kind: "note", tone: "bad", text: "Interrupted by watchdog: it made no progress." },
    ]);
    const stored = withRecords(withMessages(emptyConversation, [message(1, { role: "user", text: "Hi" })]), {
      session: "s",
      entryCount: 1,
      inputs: [],
      turns: [{ turnId: "t1", state: "ended", outcome: "failed", detail: "No key." }],
    });
    expect(transcriptBlocks(stored, undefined)).toMatchObject([{ kind: "user" }, { text: "Failed: No key." }]);
    expect(endSentence({ turnId: "t", outcome: "interrupted", reason: "new-reason" })).toBe("Interrupted: new-reason.");
  });

  it("keeps what was noted of a turn when the next one begins", () => {
    let seen = withMessages(emptyConversation, [message(1, { role: "user", text: "one" })]);
    const first = teller("t1");
    for (const body of [started, { type: "turn.stalled", idleMs: 1000, lastProgress: "x" } as const, finished()])
      seen = first(seen, body);
    seen = teller("t2")(seen, started);
    expect(transcriptBlocks(seen, undefined)).toMatchObject([{ kind: "user" }, { kind: "note", tone: "warn" }]);
  });

  it("marks what was summarised away and what came late, and reads it all", () => {
    const seen = withMessages(emptyConversation, [
      message(1, { role: "user", text: "old", archived: true }),
      message(2, { role: "summary", text: "in short" }),
      message(3, { role: "assistant", text: "too late", late: true }),
    ]);
    expect(transcriptBlocks(seen, undefined)).toMatchObject([
      { kind: "user", isArchived: true },
      { kind: "summary", text: "in short" },
      { kind: "answer", isLate: true },
    ]);
  });

  it("shows every word and every call once and in order, whatever is stored when, and read again when", () => {
    const step = fc.record({
      deltas: fc.array(fc.stringMatching(/^[a-z]{1,6}$/), { maxLength: 4 }),
      reasoning: fc.array(fc.stringMatching(/^[a-z]{1,6}$/), { maxLength: 2 }),
      callCount: fc.nat(2),
      /** After which of its events the transcript is read. */
      readsAfter: fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
    });
    const reach = { readMidStep: 0, calls: 0 };
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), (steps) => {
        const tell = teller("t1");
        const store: Message[] = [message(1, { role: "user", text: "Hi" })];
        let [seen, text, thought] = [tell(emptyConversation, started), "", ""];
        const callIds: string[] = [];
        for (const [index, { deltas, reasoning, callCount, readsAfter }] of steps.entries()) {
          const ids = Array.from({ length: callCount }, (_none, call) => `c${index}-${call}`);
          const toolCalls = ids.map((callId) => ({ callId, name: "shell", input: {} }));
          const bodies: TurnEventBody[] = [
            ...reasoning.map((one): TurnEventBody => ({ type: "reasoning.delta", text: one })),
            ...deltas.map(delta),
            ...toolCalls.map((call): TurnEventBody => ({ type: "tool.started", ...call })),
            ...ids.map((callId): TurnEventBody => ({
              type: "tool.finished",
              callId,
              name: "shell",
              ok: true,
              output: "",
              durationMs: 1,
            })),
          ];
          for (const [place, body] of bodies.entries()) {
            // The answer is in the store before its first call is told.
            if (place === reasoning.length + deltas.length)
              store.push(
                message(store.length + 1, {
                  role: "assistant",
                  text: deltas.join(""),
                  reasoning: reasoning.join(""),
                  toolCalls,
                }),
              );
            seen = tell(seen, body);
            if (body.type === "text.delta") text += body.text;
            if (body.type === "reasoning.delta") thought += body.text;
            if (body.type === "tool.started") callIds.push(body.callId);
            if (readsAfter[place % 12]) {
              seen = withMessages(seen, store);
              reach.readMidStep++;
            }
            const blocks = transcriptBlocks(seen, undefined);
            expect(words(blocks, "answer")).toBe(text);
            expect(words(blocks, "thought")).toBe(thought);
            // What the store has may be ahead of what was told, never behind.
            const shown = blocks.flatMap((block) => (block.kind === "call" ? [block.callId] : []));
            expect(shown.slice(0, callIds.length)).toEqual(callIds);
            expect(new Set(shown).size).toBe(shown.length);
            expect(new Set(blocks.map(({ key }) => key)).size).toBe(blocks.length);
          }
          if (callCount === 0)
            store.push(
              message(store.length + 1, { role: "assistant", text: deltas.join(""), reasoning: reasoning.join("") }),
            );
          reach.calls += callCount;
        }
        seen = withMessages(tell(seen, finished()), store);
        const blocks = transcriptBlocks(seen, undefined);
        expect(words(blocks, "answer")).toBe(text);
        expect(blocks.some((block) => block.key.startsWith("live "))).toBe(false);
      }),
    );
    expect(reach.readMidStep).toBeGreaterThan(50);
    expect(reach.calls).toBeGreaterThan(50);
  });
});
