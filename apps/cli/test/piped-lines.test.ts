import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pipedLines } from "../src/chat/piped-lines.ts";
import { messageBytesMax } from "../src/message.ts";

async function linesOf(chunks: readonly Buffer[]): Promise<readonly string[]> {
  const lines: string[] = [];
  async function* stdin(): AsyncGenerator<Buffer> {
    yield* chunks;
  }
  for await (const line of pipedLines(stdin())) lines.push("text" in line ? line.text : "problem");
  return lines;
}

describe("lines of a pipe", () => {
  it("are the same however the bytes were cut, characters of several bytes too", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: fc.constantFrom("a", "é", "🙂", "\n", "\r\n") }),
        fc.array(fc.nat(40)),
        async (text, cuts) => {
          const bytes = Buffer.from(text);
          const places = [...new Set(cuts.filter((cut) => cut < bytes.byteLength))].toSorted(
            (left, right) => left - right,
          );
          const chunks = [0, ...places].map((from, index) => bytes.subarray(from, places[index]));
          const wanted = text.split(/\r?\n/);
          if (wanted.at(-1) === "") wanted.pop();
          expect(await linesOf(chunks)).toEqual(wanted);
        },
      ),
    );
  });

  it("one that is too long or no UTF-8 is a problem of its own, and costs no more memory than the bound", async () => {
    const chunk = Buffer.alloc(65_536, "x");
    const long = Array.from({ length: Math.ceil((3 * messageBytesMax) / chunk.byteLength) }, () => chunk);
    expect(await linesOf([...long, Buffer.from("\nshort\n"), Buffer.from([0xff, 0x0a]), Buffer.from("last")])).toEqual([
      "problem",
      "short",
      "problem",
      "last",
    ]);
  });
});
