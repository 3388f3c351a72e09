import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KeyDecoder } from "../src/chat/editing/key-decoder.ts";
import type { Key } from "../src/chat/editing/key-decoder.ts";

const escape = "\u001b";

function keysOf(...pieces: readonly (string | Uint8Array)[]): readonly Key[] {
  const decoder = new KeyDecoder();
  return joined(pieces.flatMap((piece) => decoder.decode(Buffer.from(piece))));
}

/** Text may come in pieces; what it says does not depend on where they were cut. */
function joined(keys: readonly Key[]): readonly Key[] {
  const all: Key[] = [];
  for (const key of keys) {
    const last = all.at(-1);
    if (key.kind !== "press" && last?.kind === key.kind) all[all.length - 1] = { ...key, text: last.text + key.text };
    else all.push(key);
  }
  return all;
}

const pressesOf = (text: string): readonly string[] =>
  keysOf(text).map((key) => (key.kind === "press" ? key.name : `${key.kind}:${key.text}`));

describe("keys", () => {
  it.each([
    ["\r", ["enter"]],
    ["\n", ["enter"]],
    ["\r\n", ["enter"]],
    ["\t\u007f\b", ["tab", "backspace", "backspace"]],
    ["\u0001\u0003\u001a", ["ctrl-a", "ctrl-c", "ctrl-z"]],
    [`${escape}[A${escape}OB${escape}[C${escape}OD`, ["up", "down", "right", "left"]],
    [`${escape}[H${escape}[1~${escape}OF${escape}[4~${escape}[3~`, ["home", "home", "end", "end", "delete"]],
    [`${escape}[1;5D${escape}[1;3C${escape}[1;2A${escape}[3;5~`, ["ctrl-left", "alt-right", "shift-up", "ctrl-delete"]],
    [
      `${escape}\r${escape}\n${escape}[13;2u${escape}[27;2;13~`,
      ["alt-enter", "alt-enter", "shift-enter", "shift-enter"],
    ],
    [`${escape}[13;3u${escape}[99;5u${escape}[97;1u${escape}[228u`, ["alt-enter", "ctrl-c", "text:aä"]],
    [`${escape}b${escape}D${escape}\u007f${escape}ä`, ["alt-b", "alt-d", "alt-backspace", "alt-ä"]],
    [`${escape}${escape}[A`, ["escape", "up"]],
    [`${escape}OM${escape}O5C`, ["enter", "ctrl-right"]],
  ])("%j are %j", (text, names) => {
    expect(pressesOf(text)).toEqual(names);
  });

  it("sequences that mean nothing here leave nothing behind", () => {
    const unknown = ["[15~", "OP", "[[A", "[I", "[?1;2c", "[12;40R", "[<0;1;2M", "[5~", "[201~"];
    expect(pressesOf(`a${unknown.map((one) => escape + one).join("")}b`)).toEqual(["text:ab"]);
  });

  it("what is no sequence becomes text at last, and swallows no key", () => {
    expect(pressesOf(`${escape}[1\u0003`)).toEqual(["text:1", "ctrl-c"]);
    expect(pressesOf(`${escape}[${"1;".repeat(64)}\r`).at(-1)).toBe("enter");
  });

  it("bytes that are no UTF-8 become the sign for it", () => {
    expect(keysOf(new Uint8Array([0x61, 0xff, 0x62]))).toEqual([{ kind: "text", text: "a\ufffdb" }]);
  });

  it("a paste is text to its end, whatever it holds", () => {
    const pasted = `one\r\ntwo\rthree\n${escape}[A\u0003${escape}[200~${escape}[201`;
    expect(keysOf(`${escape}[200~${pasted}${escape}[201~x`)).toEqual([
      { kind: "paste", text: pasted.replaceAll(/\r\n?/g, "\n") },
      { kind: "text", text: "x" },
    ]);
  });

  it("are the same wherever the bytes are cut", () => {
    const part = fc.constantFrom(
      "a",
      "ä",
      "日",
      "👩‍👩‍👧",
      "\r",
      "\n",
      "\t",
      "\u0003",
      "\u007f",
      ...["[A", "[1;5D", "OH", "[13;2u", "\r", "b", "[15~", "[200~", "[201~", ""].map((rest) => escape + rest),
    );
    let cutInside = 0;
    let pastes = 0;
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 20 }),
        fc.array(fc.nat({ max: 6 }), { maxLength: 30 }),
        (parts, sizes) => {
          const bytes = Buffer.from(parts.join(""));
          const pieces: Buffer[] = [];
          let at = 0;
          // A read of one byte that is Ctrl-C has a meaning of its own in a paste.
          for (const size of sizes) pieces.push(bytes.subarray(at, (at += size + 2)));
          pieces.push(bytes.subarray(at));
          const isLoneCtrlC = pieces.some((piece) => piece.length === 1 && piece[0] === 3);
          fc.pre(!isLoneCtrlC);
          const whole = keysOf(bytes);
          // The two halves of a line's end may come apart while typing; nobody types both.
          fc.pre(!bytes.includes("\r\n"));
          expect(keysOf(...pieces)).toEqual(whole);
          cutInside += pieces.filter((piece) => piece.at(-1) === 0x1b).length;
          pastes += whole.filter(({ kind }) => kind === "paste").length;
        },
      ),
      { numRuns: 2000 },
    );
    expect(cutInside).toBeGreaterThan(50);
    expect(pastes).toBeGreaterThan(50);
  });
});
