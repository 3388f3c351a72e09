import * as fc from "fast-check";
import { expect, test } from "vitest";
import { CapturedOutput } from "../src/captured-output.ts";
import { createShellTool } from "../src/index.ts";
import { deps, workbench } from "./workbench.ts";

test("a flood is cut in the middle, and what was dropped is counted", async () => {
  const { context } = await workbench();
  const shell = createShellTool(deps, { outputBytesMax: 400 });
  const answer = await shell.execute({ command: "echo first; yes | head -c 20000000; echo last" }, context);
  expect(answer).toMatch(/^first\n(y\n)*y?\n?\n\[\.\.\. \d+ bytes dropped \.\.\.\]\n/);
  expect(answer).toMatch(/\nlast\n\[exit code 0\]$/);
  expect(answer).toContain(`[... ${"first\n".length + 20_000_000 + "last\n".length - 400} bytes dropped ...]`);
  expect(answer.length).toBeLessThan(500);
});

test("output of exactly the bound is whole, one byte more is cut", () => {
  const whole = new CapturedOutput(16);
  whole.push(Buffer.from("0123456789abcdef"));
  expect(whole.text()).toBe("0123456789abcdef");
  whole.push(Buffer.from("g"));
  expect(whole.text()).toBe("0123\n[... 1 bytes dropped ...]\n56789abcdefg");
});

test("a gap never breaks a character, however the bytes arrive", () => {
  const reached = { whole: 0, cut: 0 };
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 60, size: "max" }).filter((text) => !text.includes("\0")),
      fc.integer({ min: 16, max: 64 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
      (text, bytesMax, sizes) => {
        const bytes = Buffer.from(text);
        const output = new CapturedOutput(bytesMax);
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = sizes[turn % sizes.length] ?? 1;
          output.push(bytes.subarray(at, at + size));
          at += size;
        }
        const whole = bytes.toString();
        const kept = output.text();
        const gap = /\n\[\.\.\. (\d+) bytes dropped \.\.\.\]\n/.exec(kept);
        const head = gap ? kept.slice(0, gap.index) : "";
        const tail = gap ? kept.slice(gap.index + gap[0].length) : kept;
        const keptBytes = Buffer.byteLength(head) + Buffer.byteLength(tail);
        reached[gap ? "cut" : "whole"] += 1;
        expect(gap !== null).toBe(bytes.length > bytesMax);
        expect([whole.slice(0, head.length), whole.slice(whole.length - tail.length)]).toEqual([head, tail]);
        expect(keptBytes + Number(gap?.[1] ?? 0)).toBe(bytes.length);
        expect(keptBytes).toBeGreaterThan(Math.min(bytes.length, bytesMax - 7) - 1);
      },
    ),
    { numRuns: 400 },
  );
  expect(reached.whole).toBeGreaterThan(50);
  expect(reached.cut).toBeGreaterThan(50);
});
