import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EntryBody } from "@turnkeeper/state-store";
import type { LanguageModelV3Prompt } from "@ai-sdk/provider";
import { Conversation } from "../src/conversation.ts";
import { strictestProvider } from "../src/testing/index.ts";

const call = (callId: string): EntryBody => ({
  role: "assistant",
  parts: [{ type: "tool-call", callId, name: "t", input: {} }],
  model: "m",
});
const result = (callId: string): EntryBody => ({ role: "tool", callId, name: "t", status: "ok", output: "r" });

const anyBody: fc.Arbitrary<EntryBody> = fc.oneof(
  fc.record({ role: fc.constant("user" as const), text: fc.string({ minLength: 1 }) }),
  fc.record({ role: fc.constant("summary" as const), text: fc.string({ minLength: 1 }) }),
  fc.record({ role: fc.constant("notice" as const), text: fc.string() }),
  fc.string().map((text): EntryBody => ({ role: "assistant", parts: [{ type: "text", text }], model: "m" })),
  fc
    .string()
    .map((text): EntryBody => ({ role: "assistant", parts: [{ type: "reasoning", text }], model: "m", partial: true })),
  fc.constantFrom("a", "b").map(call),
  fc.constantFrom("a", "b").map(result),
);

const buildPrompt = (
  system: string | undefined,
  bodies: readonly EntryBody[],
  modelId: string,
): LanguageModelV3Prompt => new Conversation(modelId, bodies).prompt(system);

describe("the prompt", () => {
  it("is acceptable to the strictest provider, whatever the transcript holds and wherever it is asked for", () => {
    let merged = 0;
    let repaired = 0;
    let headless = 0;
    fc.assert(
      fc.property(fc.array(anyBody, { minLength: 1, maxLength: 12 }), (bodies) => {
        const conversation = new Conversation("m");
        for (const body of bodies) {
          conversation.add(body);
          const prompt = conversation.prompt("system");
          if (prompt.length > 1) expect(strictestProvider(prompt)).toEqual([]);
        }
        const prompt = conversation.prompt("system");
        if (prompt.some(({ role, content }) => role === "user" && content.length > 1)) merged++;
        if (JSON.stringify(prompt).includes("No result of this call")) repaired++;
        if (JSON.stringify(prompt).includes("is not shown")) headless++;
      }),
      { numRuns: 500 },
    );
    expect(merged).toBeGreaterThan(20);
    expect(repaired).toBeGreaterThan(20);
    expect(headless).toBeGreaterThan(20);
  });

  it("keeps messages of one person apart, for servers that put the parts of a message together", () => {
    const said = ["Please also do X", "and Y"].map((text): EntryBody => ({ role: "user", text }));
    const [message] = buildPrompt(undefined, said, "m");
    const parts = message?.role === "user" ? message.content : [];
    expect(parts.map((part) => (part.type === "text" ? part.text : "")).join("")).toBe("Please also do X\n\nand Y");
  });

  it("that grew is the one that is made at once, and what was handed out does not change", () => {
    fc.assert(
      fc.property(fc.array(anyBody, { maxLength: 12 }), (bodies) => {
        const grown = new Conversation("m");
        const handedOut = bodies.map((body) => {
          grown.add(body);
          const prompt = grown.prompt(undefined);
          return { prompt, text: JSON.stringify(prompt) };
        });
        expect(grown.prompt(undefined)).toEqual(buildPrompt(undefined, bodies, "m"));
        for (const { prompt, text } of handedOut) expect(JSON.stringify(prompt)).toBe(text);
      }),
    );
  });

  it("costs an entry the same however long the conversation is", () => {
    const read = (count: number): number => {
      let reads = 0;
      const conversation = new Conversation("m");
      for (let index = 0; index < count; index++) {
        const body = {
          role: "user",
          get text() {
            return (void reads++, `line ${index}`);
          },
        } as const;
        conversation.add(body);
        conversation.add({ role: "assistant", parts: [{ type: "text", text: "yes" }], model: "m" });
        conversation.prompt("system");
      }
      return reads;
    };
    expect(read(400)).toBe(2 * read(200));
  });

  it("returns provider fields to the model that made them and to no other", () => {
    const bodies: EntryBody[] = [
      { role: "user", text: "hi" },
      {
        role: "assistant",
        model: "m",
        parts: [
          { type: "reasoning", text: "hm", provider: { anthropic: { signature: "s" } } },
          { type: "text", text: "yes" },
        ],
      },
    ];
    expect(JSON.stringify(buildPrompt(undefined, bodies, "m"))).toContain("signature");
    expect(JSON.stringify(buildPrompt(undefined, bodies, "other"))).not.toMatch(/signature|reasoning/);
  });
});
