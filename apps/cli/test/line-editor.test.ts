import { virtualHost } from "@turnkeeper/kernel/testing";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { ChatHistory } from "../src/chat/editing/chat-history.ts";
import { KeyDecoder } from "../src/chat/editing/key-decoder.ts";
import { LineEditing } from "../src/chat/editing/line-editing.ts";
import { placeOf, textRows } from "../src/chat/editing/text-rows.ts";
import { LineEditor } from "../src/chat/line-editor.ts";
import { Screen } from "../src/display/screen.ts";
import { FakeTerminal } from "./inside/fake-terminal.ts";

const escape = "\u001b";
const [up, down, left] = ["A", "B", "D"].map((final) => `${escape}[${final}`) as [string, string, string];
const [ctrlC, ctrlD, ctrlG, ctrlL, ctrlR, ctrlZ] = [3, 4, 7, 12, 18, 26].map((code) => String.fromCharCode(code)) as [
  string,
  string,
  string,
  string,
  string,
  string,
];

interface Bench {
  readonly terminal: FakeTerminal;
  readonly screen: Screen;
  readonly editor: LineEditor;
  readonly host: ReturnType<typeof virtualHost>;
  readonly lines: string[];
  readonly told: string[];
  readonly kept: string[];
}

function bench(
  options: { readonly columns?: number; readonly rows?: number; readonly texts?: readonly string[] } = {},
): Bench {
  const { columns = 20, rows = 8, texts = [] } = options;
  const terminal = new FakeTerminal({ columns, rows });
  const host = virtualHost();
  const { io } = terminal;
  const screen = new Screen({ stdout: io.stdout, stderr: io.stderr, host });
  const [lines, told, kept]: [string[], string[], string[]] = [[], [], []];
  const history = new ChatHistory({ texts, add: (text) => kept.push(text) });
  const editor = new LineEditor(
    { io, screen, host, history },
    { completions: ["/resume ", "/help", "/new", "/model "] },
    {
      onLine: (line) => lines.push(line),
      onInterrupt: (isEmpty) => told.push(isEmpty ? "interrupt on empty" : "interrupt"),
      onEnd: () => told.push("end"),
      onHangUp: () => told.push("hang-up"),
    },
  );
  return { terminal, screen, editor, host, lines, told, kept };
}

describe("a line that is typed", () => {
  it("stands behind the prompt, and is sent with Enter", () => {
    const { terminal, editor, lines } = bench();
    editor.prompt();
    expect(terminal.screen).toEqual(["›"]);
    terminal.type("hello");
    expect(terminal.screen).toEqual(["› hello"]);
    expect(terminal.cursor).toEqual({ row: 0, column: 7 });
    terminal.type("\r");
    expect(lines).toEqual(["hello"]);
    expect(terminal.cursor).toEqual({ row: 1, column: 0 });
    editor.close();
  });

  it("sends what was typed and nothing else while it is typed at the end", () => {
    const { terminal, editor } = bench({ columns: 80 });
    editor.prompt();
    terminal.type("a long line of text");
    const before = terminal.written.length;
    terminal.type("x");
    expect(terminal.written.slice(before)).toBe("x");
    editor.close();
  });

  it("goes on in further rows, and may be edited in the middle of them", () => {
    const { terminal, editor, lines } = bench();
    editor.prompt();
    terminal.type("abcdefghijklmnopqrstuvwxyz");
    expect(terminal.screen).toEqual(["› abcdefghijklmnopq", "  rstuvwxyz"]);
    terminal.type(up, left, "日本");
    expect(terminal.screen).toEqual(["› abcdefgh日本ijklm", "  nopqrstuvwxyz"]);
    expect(terminal.cursor).toEqual({ row: 0, column: 14 });
    terminal.type("\u007f\u007f", down, "!", "\r");
    expect(lines).toEqual(["abcdefghijklmnopqrstuvwxy!z"]);
    editor.close();
  });

  it("is edited by characters as people see them", () => {
    const { terminal, editor, lines } = bench();
    editor.prompt();
    terminal.type("a👩‍👩‍👧e\u0301", left, left, "|");
    expect(terminal.screen).toEqual(["› a|👩‍👩‍👧e\u0301"]);
    expect(terminal.cursor).toEqual({ row: 0, column: 4 });
    terminal.type("\u007f", `${escape}[3~`, "\r");
    expect(lines).toEqual(["ae\u0301"]);
    editor.close();
  });

  it("takes a line break with Alt-Enter and behind a backslash, but not behind two", () => {
    const { terminal, editor, lines } = bench();
    editor.prompt();
    terminal.type(`one${escape}\rtwo\\\rthree\\\\\r`);
    expect(lines).toEqual(["one\ntwo\nthree\\\\"]);
    editor.close();
  });

  it("takes what is pasted as text, line breaks and all, and shows what it holds without doing it", () => {
    const { terminal, editor, lines } = bench({ columns: 40 });
    editor.prompt();
    const pasted = `${escape}[200~one\r\n\ttwo${escape}[2J${ctrlC}\rthree${escape}[201~`;
    // However it is cut.
    const bytes = Buffer.from(pasted);
    for (let at = 0; at < bytes.length; at += 2) terminal.type(bytes.subarray(at, at + 2));
    expect(terminal.screen).toEqual(["› one", "      two^[[2J^C", "  three"]);
    expect(lines).toEqual([]);
    terminal.type("\r");
    expect(lines).toEqual([`one\n\ttwo${escape}[2J${ctrlC}\nthree`]);
    editor.close();
  });

  it("a lone Ctrl-C ends a paste whose end was lost", () => {
    const { terminal, editor, told } = bench();
    editor.prompt();
    terminal.type(`${escape}[200~half`, ctrlC);
    expect(told).toEqual(["interrupt"]);
    editor.close();
  });

  it("shows the part around the cursor where it is longer than the terminal is high", () => {
    const { terminal, editor, lines } = bench({ rows: 5 });
    terminal.io.stdout.line("above");
    editor.prompt();
    const text = Array.from({ length: 9 }, (_, index) => `line ${index}`).join("\n");
    terminal.type(`${escape}[200~${text}${escape}[201~`);
    expect(terminal.screen).toEqual(["above", "  line 5", "  line 6", "  line 7", "  line 8"]);
    for (let step = 0; step < 7; step++) terminal.type(up);
    expect(terminal.screen).toEqual(["above", "  line 1", "  line 2", "  line 3", "  line 4"]);
    expect(terminal.cursor.row).toBe(1);
    terminal.type("\r");
    expect(lines).toEqual([text]);
    editor.close();
  });

  it("Tab completes a command, and shows what there is where several fit", () => {
    const { terminal, editor } = bench({ columns: 40 });
    editor.prompt();
    terminal.type("/re\t");
    expect(terminal.screen).toEqual(["› /resume"]);
    terminal.type("\u0015/\t");
    expect(terminal.screen).toEqual(["› /", "/resume /help /new /model"]);
    terminal.type("h");
    expect(terminal.screen).toEqual(["› /h"]);
    editor.close();
  });

  it("the rest of a key that waits to be read makes a key of Escape, also where its time has run out", () => {
    const { terminal, editor, host, lines } = bench();
    editor.prompt();
    terminal.type("ab");
    const after = vi.spyOn(host.timers, "after");
    terminal.type(escape);
    // As behind a callback that took long: what is due comes before what is read.
    for (const [, judge] of after.mock.calls) judge();
    terminal.type("[Dx\r");
    expect(lines).toEqual(["axb"]);
    editor.close();
  });

  it("Escape alone means nothing, what follows it at once is one key, and no key becomes text", async () => {
    const { terminal, editor, host, lines } = bench();
    editor.prompt();
    terminal.type(escape);
    await host.advance(500);
    terminal.type("[A", escape, "[", "1;5", "D", `${escape}[15~${escape}OP${escape}[?1;2c`, "\r");
    expect(lines).toEqual(["[A"]);
    expect(host.pendingTimerCount()).toBe(0);
    editor.close();
  });
});

describe("the history", () => {
  const texts = ["first", "make the\ntests pass", "last"];

  it("is walked through with the arrows; what was being typed is kept", () => {
    const { terminal, editor, lines, kept } = bench({ texts });
    editor.prompt();
    terminal.type("dra", up);
    expect(terminal.screen).toEqual(["› last"]);
    terminal.type(up);
    expect(terminal.screen).toEqual(["› make the", "  tests pass"]);
    terminal.type(up, up, up);
    expect(terminal.screen).toEqual(["› first"]);
    terminal.type(down, down, down, down, down, "ft\r");
    expect(lines).toEqual(["draft"]);
    expect(kept).toEqual(["draft"]);
    editor.close();
  });

  it("is searched with Ctrl-R, further back with each one", () => {
    const { terminal, editor, lines } = bench({ texts: [...texts, "test it"], columns: 80 });
    editor.prompt();
    terminal.type("draft", ctrlR, "test");
    expect(terminal.screen[0]).toBe("› test it");
    expect(terminal.screen[1]).toMatch(/^search: test/);
    terminal.type(ctrlR);
    expect(terminal.screen.slice(0, 2)).toEqual(["› make the", "  tests pass"]);
    terminal.type("x");
    expect(terminal.screen[0]).toBe("› draft");
    expect(terminal.screen[1]).toMatch(/^not found: testx/);
    terminal.type(ctrlG);
    expect(terminal.screen).toEqual(["› draft"]);
    terminal.type(ctrlR, "FIRST", "\u007f\u007f\u007f\u007f\u007f", "fir", `${escape}[F`, "!\r");
    expect(lines).toEqual(["first!"]);
    editor.close();
  });

  it("keeps neither answers to questions nor what begins with a space nor a repeat", async () => {
    const { terminal, editor, kept } = bench({ texts: [] });
    editor.prompt();
    terminal.type("hello\r");
    editor.prompt();
    terminal.type(" secret\r");
    editor.prompt();
    terminal.type("hello\r");
    editor.watch();
    const answer = editor.ask("Sure? ", new AbortController().signal);
    terminal.type("hunter2\r");
    expect(await answer).toBe("hunter2");
    editor.prompt();
    terminal.type(up, up, up);
    expect(terminal.screen.at(-1)).toBe("› hello");
    expect(kept).toEqual(["hello"]);
    editor.close();
  });
});

describe("beside output", () => {
  it("output waits while something is typed during a turn, and goes on once it is sent or emptied", () => {
    const { terminal, screen, editor, lines } = bench();
    editor.watch();
    screen.result("half a ");
    terminal.type("st");
    screen.result("line\n");
    screen.note("note");
    expect(terminal.screen).toEqual(["half a", "› st"]);
    terminal.type("op\r");
    expect(lines).toEqual(["stop"]);
    expect(terminal.screen).toEqual(["half a", "› stop", "line", "note"]);
    terminal.type("x");
    screen.note("more");
    terminal.type("\u007f");
    expect(terminal.screen).toEqual(["half a", "› stop", "line", "note", "more"]);
    editor.close();
  });

  it("a note that comes between turns stands above the line, which stays as it is", () => {
    const { terminal, screen, editor } = bench();
    editor.prompt();
    terminal.type("some text that is long enough", left);
    screen.note("note");
    expect(terminal.screen).toEqual(["note", "› some text that is", "   long enough"]);
    expect(terminal.cursor).toEqual({ row: 2, column: 13 });
    editor.close();
  });

  it("what was being typed when a turn ends stands at the prompt", () => {
    const { terminal, screen, editor, lines } = bench();
    editor.watch();
    terminal.type("next");
    screen.result("answer\n");
    editor.prompt();
    expect(terminal.screen).toEqual(["answer", "› next"]);
    terminal.type("\r");
    expect(lines).toEqual(["next"]);
    editor.close();
  });

  it("a question waits for what is being typed, takes the next line, and holds output until then", async () => {
    const { terminal, screen, editor, lines } = bench({ columns: 40 });
    editor.watch();
    terminal.type("mess");
    const answer = editor.ask("Allow? ", new AbortController().signal);
    terminal.type("age\r");
    await Promise.resolve();
    await Promise.resolve();
    expect(terminal.screen).toEqual(["› message", "Allow?"]);
    screen.note("meanwhile");
    terminal.type("y\r");
    expect(await answer).toBe("y");
    expect(lines).toEqual(["message"]);
    expect(terminal.screen).toEqual(["› message", "Allow? y", "meanwhile"]);
    editor.close();
  });

  it("a question takes the place of the prompt, which comes back with what was typed", async () => {
    const { terminal, editor, lines } = bench({ columns: 40 });
    editor.prompt();
    terminal.type("half");
    const answer = editor.ask("Allow? ", new AbortController().signal);
    expect(terminal.screen).toEqual(["Allow?"]);
    // Whoever asks for the prompt meanwhile gets it then.
    editor.prompt();
    terminal.type("n\r");
    expect(await answer).toBe("n");
    expect(terminal.screen).toEqual(["Allow? n", "› half"]);
    terminal.type("way\r");
    expect(lines).toEqual(["halfway"]);
    editor.close();
  });

  it("is not answered by a terminal that goes away", async () => {
    const { terminal, editor, told } = bench();
    const moot = new AbortController();
    let answers = 0;
    const answer = editor.ask("Allow? ", moot.signal).finally(() => answers++);
    terminal.stdin.emit("end");
    await new Promise(setImmediate);
    expect([told, answers]).toEqual([["hang-up"], 0]);
    moot.abort();
    expect(await answer).toBeUndefined();
    editor.close();
  });

  it("a question that is too wide stands above its answer; it ends with its signal, at Ctrl-D, and with the editor", async () => {
    const { terminal, editor, told } = bench();
    editor.watch();
    const abort = new AbortController();
    const moot = editor.ask("Allow this or that? [y]es, [n]o ", abort.signal);
    expect(terminal.screen).toEqual(["Allow this or that?", " [y]es, [n]o"]);
    terminal.type("ye", ctrlC);
    expect(terminal.screen.at(-1)).toBe("  ye");
    expect(told).toEqual(["interrupt"]);
    abort.abort();
    expect(await moot).toBeUndefined();
    const left = editor.ask("Allow? ", new AbortController().signal);
    terminal.type(ctrlD);
    expect(await left).toBeUndefined();
    const closed = editor.ask("Allow? ", new AbortController().signal);
    editor.close();
    expect(await closed).toBeUndefined();
    expect(await editor.ask("Allow? ", new AbortController().signal)).toBeUndefined();
  });
});

describe("the terminal", () => {
  it("is drawn anew at another size, wherever the cursor was and whatever stood above", () => {
    const { terminal, editor } = bench({ columns: 30, rows: 12 });
    terminal.io.stdout.line("above");
    editor.prompt();
    terminal.type("the quick brown fox jumps over the lazy dog and goes home", up);
    for (const columns of [17, 60, 9, 25, 30]) {
      terminal.resize(columns, 12);
      const [above, ...rest] = terminal.lines;
      expect(above).toBe("above");
      const text = rest.map((line) => line.slice(2).padEnd(columns - 3));
      expect(text.join("").trimEnd()).toBe("the quick brown fox jumps over the lazy dog and goes home");
      expect(rest.length).toBe(Math.ceil(57 / (columns - 3)));
    }
    editor.close();
  });

  it("shows what was typed after any keys, notes and sizes", () => {
    const reached = { resizedNarrower: 0, severalRows: 0, notes: 0, wide: 0 };
    const pressed = fc.constantFrom(
      "a",
      "b c",
      "日本",
      "e\u0301",
      "👩‍👩‍👧",
      "\t",
      "\u007f",
      "\u0001",
      "\u0005",
      "\u000b",
      "\u0015",
      "\u0017",
      "\u0019",
      up,
      down,
      left,
      `${escape}[C`,
      `${escape}\r`,
      `${escape}[3~`,
      `${escape}b`,
      `${escape}f`,
      `${escape}d`,
      "a text of some length, ",
      `${escape}[200~x\ny${escape}[201~`,
    );
    const step = fc.oneof(
      { weight: 8, arbitrary: pressed.map((keys) => ({ keys })) },
      { weight: 2, arbitrary: fc.integer({ min: 8, max: 40 }).map((columns) => ({ columns })) },
      { weight: 1, arbitrary: fc.constant({ note: "note" }) },
    );
    fc.assert(
      fc.property(fc.array(step, { minLength: 10, maxLength: 40 }), (steps) => {
        const { terminal, screen, editor } = bench({ columns: 20, rows: 400 });
        const twin = new LineEditing({
          history: new ChatHistory({ texts: [], add: () => {} }),
          columns: () => terminal.columns - 3,
        });
        const decoder = new KeyDecoder();
        const above: string[] = [];
        editor.prompt();
        for (const one of steps) {
          if ("keys" in one) {
            terminal.type(one.keys);
            for (const key of decoder.decode(Buffer.from(one.keys))) twin.take(key);
          } else if ("columns" in one) {
            if (one.columns < terminal.columns) reached.resizedNarrower++;
            terminal.resize(one.columns, 400);
          } else {
            screen.note(one.note);
            above.push(one.note);
            reached.notes++;
          }
          const rows = textRows(twin.text, terminal.columns - 3);
          const shown = rows.map((row, index) => ((index === 0 ? "› " : "  ") + row.shown).trimEnd());
          while (shown.at(-1) === "") shown.pop();
          expect(terminal.lines).toEqual([...above, ...shown]);
          const place = placeOf(twin.text, rows, twin.cursor);
          expect(terminal.cursor).toEqual({ row: above.length + place.row, column: place.column + 2 });
          if (rows.length > 2) reached.severalRows++;
          if (twin.text.includes("日")) reached.wide++;
        }
        editor.close();
      }),
      { numRuns: 300 },
    );
    for (const count of Object.values(reached)) expect(count).toBeGreaterThan(50);
  });

  it("is cleared by Ctrl-L, and the line stays", () => {
    const { terminal, editor } = bench();
    terminal.io.stdout.line("above");
    editor.prompt();
    terminal.type("text", ctrlL);
    expect(terminal.screen).toEqual(["› text"]);
    expect(terminal.cursor).toEqual({ row: 0, column: 6 });
    editor.close();
  });

  it("is given to the shell at Ctrl-Z, and taken back when the process goes on", async () => {
    const { terminal, editor, host } = bench();
    editor.prompt();
    terminal.type("text");
    expect([terminal.isRaw, terminal.hasPasteMarks]).toEqual([true, true]);
    terminal.onSuspend = () => {
      expect([terminal.isRaw, terminal.hasPasteMarks]).toEqual([false, false]);
      terminal.io.stdout.line("[1]+ Stopped");
    };
    terminal.type(ctrlZ);
    terminal.signal("SIGCONT");
    expect([terminal.isRaw, terminal.hasPasteMarks]).toEqual([true, true]);
    expect(terminal.screen).toEqual(["› text", "[1]+ Stopped", "› text"]);
    // Where nobody can stop it, it goes on by itself.
    terminal.onSuspend = () => {};
    terminal.type(ctrlZ);
    await host.advance(1000);
    expect(terminal.isRaw).toBe(true);
    expect(host.pendingTimerCount()).toBe(0);
    editor.close();
  });

  it("is given back at the end, however the process ends, and nothing is left of the editor", () => {
    const { terminal, editor, host, lines } = bench();
    editor.prompt();
    for (const listener of terminal.exitListeners) listener();
    expect([terminal.isRaw, terminal.hasPasteMarks]).toEqual([false, false]);
    editor.close();
    editor.close();
    terminal.type("never\r");
    editor.prompt();
    expect(lines).toEqual([]);
    expect([terminal.exitListeners.size, terminal.signalListenerCount, host.pendingTimerCount()]).toEqual([0, 0, 0]);
  });

  it("Ctrl-C and Ctrl-D tell whether anything was typed", () => {
    const { terminal, editor, told } = bench();
    editor.prompt();
    terminal.type(ctrlC, "x", ctrlC);
    editor.clear();
    expect(terminal.screen).toEqual(["›"]);
    terminal.type(ctrlD);
    expect(told).toEqual(["interrupt on empty", "interrupt", "end"]);
    editor.close();
  });
});
