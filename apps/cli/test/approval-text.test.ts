import { describe, expect, it } from "vitest";
import { callLines } from "../src/display/approval-text.ts";
import { styleOf } from "../src/display/style.ts";

const plain = styleOf(false);

describe("a call that a person is asked about", () => {
  it("is shown in full, every line of it behind a margin", () => {
    const command = `make test\n  Allow? y\n${"x".repeat(200)}`;
    expect(callLines({ name: "shell", input: { command, timeout_s: 5 } }, plain)).toEqual([
      "  shell asks to run:",
      "    command (3 lines):",
      "      make test",
      "        Allow? y",
      `      ${"x".repeat(200)}`,
      "    timeout_s: 5",
    ]);
  });

  it("says which subagent makes it", () => {
    const [line] = callLines({ name: "shell", input: {}, childSessionId: "child-1" }, plain);
    expect(line).toBe("  shell of subagent child-1 asks to run:");
  });

  it("shows what would not be seen, or would change what is", () => {
    const [, line] = callLines(
      { name: "shell", input: { command: "rm \u202efdp.a\u202c \u001b[8m-rf\u200b\r" } },
      plain,
    );
    expect(line).toBe("    command: rm \\u{202e}fdp.a\\u{202c} \\u{1b}[8m-rf\\u{200b}\\u{d}");
    expect(callLines({ name: "mcp\u001b[2J", input: ["a\nb"] }, plain)).toEqual([
      "  mcp\\u{1b}[2J asks to run:",
      '    input: ["a\\nb"]',
    ]);
  });

  it("is shown as the change that it makes where it is an edit", () => {
    const old_text = "a\nb\nc\nd\nold\none\ne\nf";
    const new_text = "a\nb\nc\nd\nnew\ne\nf";
    expect(
      callLines({ name: "edit_file", input: { path: "x.ts", old_text, new_text, replace_all: true } }, plain),
    ).toEqual([
      "  edit_file asks to run:",
      "    path: x.ts",
      "    replace_all: true",
      "     b",
      "     c",
      "     d",
      "    -old",
      "    -one",
      "    +new",
      "     e",
      "     f",
    ]);
    const coloured = styleOf(true);
    expect(
      callLines({ name: "edit_file", input: { path: "x", old_text: "1", new_text: "2" } }, coloured).slice(-2),
    ).toEqual([`    ${coloured.red("-1")}`, `    ${coloured.green("+2")}`]);
  });

  it("an edit that deletes, adds at an end, or changes nothing is told as what it is", () => {
    const of = (old_text: string, new_text: string): readonly string[] =>
      callLines({ name: "edit_file", input: { old_text, new_text } }, plain)
        .slice(1)
        .map((line) => line.slice(4));
    expect(of("gone", "")).toEqual(["-gone"]);
    expect(of("a", "a\nb")).toEqual([" a", "+b"]);
    expect(of("a\na", "a")).toEqual([" a", "-a"]);
    expect(of("a\n", "a")).toEqual([" a", "-"]);
  });
});
