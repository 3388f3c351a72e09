import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readCommandLine } from "../src/command-words.ts";

const piece = fc.constantFrom(
  "a",
  "b c",
  " ",
  "  ",
  "\t",
  "'",
  '"',
  "'x y'",
  '"x y"',
  ";",
  "&&",
  "|",
  "\n",
  "$(",
  ")",
  "`",
  "$A",
  "\\",
  ">",
  "*",
  "#",
  "=",
  "-",
  "/",
  "%",
  ",",
  ".",
  ":",
  "@",
  "+",
  "é",
  "~",
  "!",
  "{",
  "}",
);
const line = fc.array(piece, { minLength: 1, maxLength: 8, size: "max" }).map((pieces) => pieces.join(""));

test("what is called plain, bash reads as the same words", () => {
  const plain: { readonly text: string; readonly words: readonly string[] }[] = [];
  fc.assert(
    fc.property(line, (text) => {
      const { plain: isPlain, commands } = readCommandLine(text);
      if (isPlain) plain.push({ text, words: commands[0] ?? [] });
    }),
    { numRuns: 3_000 },
  );
  expect(plain.length).toBeGreaterThan(100);
  // As arguments of a function, a number before and a separator behind them: what bash makes of each line.
  const script = plain.map(({ text }, index) => `printf '<%s>' ${index}; show ${text}`).join("\n");
  const bash = spawnSync("bash", ["-c", `show() { printf '[%s]' "$@"; printf '\\036'; }\n${script}`], {
    encoding: "utf8",
  });
  expect(bash.stderr).toBe("");
  expect(bash.stdout.split("\x1E").slice(0, -1)).toEqual(
    plain.map(({ words }, index) => `<${index}>${words.map((word) => `[${word}]`).join("")}`),
  );
});
