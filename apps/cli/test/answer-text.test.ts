import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PlainAnswer, RenderedAnswer } from "../src/display/answer-text.ts";
import { printable, styleOf } from "../src/display/style.ts";

function written(...pieces: readonly string[]): string {
  const answer = new PlainAnswer();
  return (
    pieces.map((piece) => (piece === "TOOL" ? answer.breakSegment() : answer.write(piece))).join("") + answer.end()
  );
}

describe("an answer for programs", () => {
  it("is the text with exactly one line break at its end", () => {
    expect(written("one\n", "two")).toBe("one\ntwo\n");
    expect(written("one\n\n", "\n")).toBe("one\n");
    expect(written("  indented", "\n\n", "para")).toBe("  indented\n\npara\n");
  });

  it("has whole characters, also where a provider cut one in two", () => {
    expect(new PlainAnswer().write("a\ud83d")).toBe("a");
    expect(written("a\ud83d", "\udc4d", "b")).toBe("a👍b\n");
  });

  it("is nothing at all where there was no text", () => {
    expect(written()).toBe("");
    expect(written("TOOL")).toBe("");
  });

  it("keeps texts on both sides of a tool call apart", () => {
    expect(written("Let me look.", "TOOL", "Found it.")).toBe("Let me look.\n\nFound it.\n");
    expect(written("Let me look.\n", "TOOL", "TOOL", "\n", "Found it.")).toBe("Let me look.\n\nFound it.\n");
    expect(written("TOOL", "Found it.")).toBe("Found it.\n");
    expect(written("Let me look.", "TOOL", "\n\nFound it.", "\n")).toBe("Let me look.\n\nFound it.\n");
  });

  it("has ended its line when a tool begins, so that the two read well in one log", () => {
    const answer = new PlainAnswer();
    expect(answer.write("Let me look.") + answer.breakSegment()).toBe("Let me look.\n");
    expect(answer.end()).toBe("");
  });

  it("loses nothing but line breaks at the end, however it was cut", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom("a", "\n", " ") })), (pieces) => {
        const text = pieces.join("");
        const body = text.replace(/\n+$/, "");
        expect(written(...pieces)).toBe(body === "" ? "" : `${body}\n`);
      }),
    );
  });
});

describe("an answer for a person", () => {
  it("is Markdown rendered where there is colour, and as it is where there is none", () => {
    const show = (hasColour: boolean): string => {
      const answer = new RenderedAnswer(styleOf(hasColour));
      return answer.write("a **b**") + answer.end();
    };
    expect(show(true)).toBe("a \u001b[1mb\u001b[22m\n");
    expect(show(false)).toBe("a **b**\n");
  });

  it("cannot move the cursor, set the title or turn the reading direction", () => {
    expect(printable("a\u001b[2Jb\u0007c\u009b1md\u202ee\r\nf\tg")).toBe("a[2Jbc1mde\nf\tg");
  });
});
