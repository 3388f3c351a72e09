import { describe, expect, it } from "vitest";
import { shownResult } from "../src/display/tool-line.ts";

const shell = (output: string, width = 60): { readonly isGood: boolean; readonly summary: string } =>
  shownResult({ name: "shell", ok: true, output }, width);

describe("a call's result on one line", () => {
  it.each([
    ["a\n[exit code 0]", true, "a"],
    ["a\nb\n[exit code 0]", true, "a (+1 line)"],
    ["a\nb\nc\n[exit code 0]", true, "a (+2 lines)"],
    ["(no output)\n[exit code 0]", true, "(no output)"],
    ["no such file\n[exit code 3]", false, "exit code 3  no such file"],
    ["[exit code 0]\n[exit code 1]", false, "exit code 1  [exit code 0]"],
    ["a\n[ended by signal SIGSEGV]", false, "ended by signal SIGSEGV  a"],
    ["a\n[exit code 2]\n[a background process still holds the output open]", false, "exit code 2  a (+1 line)"],
  ])("tells of the command that answered %j how it ended", (output, isGood, summary) => {
    expect(shell(output)).toEqual({ isGood, summary });
  });

  it("of a subagent is what it answered, or how it ended", () => {
    const delegate = (answer: object): object =>
      shownResult({ name: "delegate", ok: true, output: JSON.stringify(answer) }, 60);
    expect(delegate({ session: "c", outcome: "answered", answer: "Done.\nAll of it." })).toEqual({
      isGood: true,
      summary: "Done. (+1 line)",
    });
    expect(delegate({ session: "c", outcome: "interrupted", answer: "", detail: "It took too long." })).toEqual({
      isGood: false,
      summary: "interrupted: It took too long.",
    });
  });

  it("of any other tool is its first line, whatever stands in it", () => {
    expect(shownResult({ name: "read_file", ok: true, output: "\n\nx\n[exit code 1]" }, 60)).toEqual({
      isGood: true,
      summary: "x (+1 line)",
    });
    expect(shownResult({ name: "shell", ok: false, output: "Denied." }, 60)).toEqual({
      isGood: false,
      summary: "Denied.",
    });
    expect(shownResult({ name: "delegate", ok: true, output: "no JSON" }, 60)).toMatchObject({ isGood: true });
  });
});
