import { virtualHost } from "@turnkeeper/kernel/testing";
import { describe, expect, it } from "vitest";
import { Screen } from "../src/display/screen.ts";
import { KeptStream } from "./inside/command-line.ts";

function makeScreen(options: { readonly isTerminal: boolean }): {
  screen: Screen;
  out: KeptStream;
  err: KeptStream;
  host: ReturnType<typeof virtualHost>;
} {
  const host = virtualHost();
  const [out, err] = [new KeptStream(options), new KeptStream(options)];
  const environment = { TERM: "xterm" };
  return {
    screen: new Screen({ stdout: out.asOutput(environment), stderr: err.asOutput(environment), host }),
    out,
    err,
    host,
  };
}

describe("answer and notes on one terminal", () => {
  it("a note never lands in the middle of a line of the answer", () => {
    const { screen, err } = makeScreen({ isTerminal: true });
    screen.result("half a line");
    screen.note("note");
    expect(err.text).toBe("\nnote\n");
    screen.result("whole\n");
    screen.note("next");
    expect(err.text).toBe("\nnote\nnext\n");
  });

  it("apart from each other they need no such care", () => {
    const { screen, out, err } = makeScreen({ isTerminal: false });
    screen.result("half a line");
    screen.note("note");
    expect([out.text, err.text]).toEqual(["half a line", "note\n"]);
  });

  it("a sentence is broken between its words, marked line by line, and left whole where it is typed or piped", () => {
    const { screen, err } = makeScreen({ isTerminal: true });
    const mark = (line: string): string => `<${line}>`;
    screen.tell(`  ${"word ".repeat(17)}end`, mark);
    expect(err.text).toBe(`<  ${Array(15).fill("word").join(" ")}>\n<  word word end>\n`);
    const command = `Go on with: turnkeeper run "…" ${"--session s ".repeat(10)}`;
    screen.tell(command);
    expect(err.text.endsWith(`\n${command}\n`)).toBe(true);
    const pipe = makeScreen({ isTerminal: false });
    pipe.screen.tell("word ".repeat(40));
    expect(pipe.err.text).toBe(`${"word ".repeat(40)}\n`);
  });

  it("a spinner turns while something is going on, is gone before anything is written, and leaves no timer", async () => {
    const { screen, err, host } = makeScreen({ isTerminal: true });
    screen.busy("thinking");
    await host.advance(100);
    expect(err.text).toBe("");
    await host.advance(200);
    expect(err.text).toContain("thinking");
    screen.result("text\n");
    expect(err.text.endsWith("\r\u001b[K")).toBe(true);
    await host.advance(2000);
    expect(err.text).toContain("2 s");
    screen.idle();
    expect(err.text.endsWith("\r\u001b[K")).toBe(true);
    expect(host.pendingTimerCount()).toBe(0);
  });

  it("no spinner where there is no terminal, or while the answer stands in mid-line", async () => {
    const pipe = makeScreen({ isTerminal: false });
    pipe.screen.busy("thinking");
    await pipe.host.advance(1000);
    expect(pipe.err.text).toBe("");
    const terminal = makeScreen({ isTerminal: true });
    terminal.screen.result("half");
    terminal.screen.busy("thinking");
    await terminal.host.advance(1000);
    expect(terminal.err.text).toBe("");
    terminal.screen.idle();
  });

  it("what comes while a line is typed waits, and is shown in order afterwards", () => {
    const { screen, out, err } = makeScreen({ isTerminal: true });
    screen.result("half");
    screen.hold();
    expect(err.text).toBe("\n");
    screen.result("one\n");
    screen.note("two");
    expect([out.text, err.text]).toEqual(["half", "\n"]);
    screen.release();
    expect([out.text, err.text]).toEqual(["halfone\n", "\ntwo\n"]);
  });
});
