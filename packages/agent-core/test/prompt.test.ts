import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EntryBody } from "@turnkeeper/state-store";
import { buildPrompt } from "../src/prompt.ts";

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

describe("the prompt", () => {
  it("is acceptable to the strictest provider, whatever the transcript holds", () => {
    let merged = 0;
    let repaired = 0;
    fc.assert(
      fc.property(fc.array(anyBody, { maxLength: 12 }), (bodies) => {
        const prompt = buildPrompt("system", bodies, "m");
        for (const [index, message] of prompt.entries()) {
          if (message.role === "system") {
            expect(index).toBe(0);
            continue;
          }
          expect(message.content.length).toBeGreaterThan(0);
          if (message.role !== "assistant") expect(prompt[index - 1]?.role).not.toBe(message.role);
          if (message.role === "user" && message.content.length > 1) merged++;
          if (message.role !== "assistant") continue;
          const calls = message.content.filter((part) => part.type === "tool-call").map((part) => part.toolCallId);
          if (calls.length === 0) continue;
          const next = prompt[index + 1];
          const results =
            next?.role === "tool" ? next.content.map((part) => ("toolCallId" in part ? part.toolCallId : "")) : [];
          expect(results.toSorted()).toEqual(calls.toSorted());
          if (JSON.stringify(next).includes("No result of this call")) repaired++;
        }
      }),
      { numRuns: 500 },
    );
    expect(merged).toBeGreaterThan(20);
    expect(repaired).toBeGreaterThan(20);
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
