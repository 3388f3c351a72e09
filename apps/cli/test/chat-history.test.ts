import { appendFileSync, chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { ChatHistory, historyCountMax } from "../src/chat/editing/chat-history.ts";
import { HistoryFile } from "../src/chat/editing/history-file.ts";
import { makeFolder } from "./outside/built-cli.ts";

function openFile(home: string): { readonly file: HistoryFile; readonly told: string[] } {
  const told: string[] = [];
  return { file: new HistoryFile(home, (problem) => told.push(problem)), told };
}

const placeIn = (home: string): string => path.join(home, "chat-history.jsonl");
const lineOf = (text: string): string => `${JSON.stringify({ v: 1, text })}\n`;

describe("the history's file", () => {
  it("keeps what was sent for the next chat, and for its owner alone", () => {
    const home = makeFolder();
    const { file, told } = openFile(home);
    expect(file.texts).toEqual([]);
    file.add("one");
    file.add("two\nlines");
    expect(openFile(home).file.texts).toEqual(["one", "two\nlines"]);
    expect(statSync(placeIn(home)).mode & 0o777).toBe(0o600);
    expect(told).toEqual([]);
  });

  it("is closed to others where it was open to them", () => {
    const home = makeFolder();
    writeFileSync(placeIn(home), lineOf("old"));
    chmodSync(placeIn(home), 0o644);
    expect(openFile(home).file.texts).toEqual(["old"]);
    expect(statSync(placeIn(home)).mode & 0o777).toBe(0o600);
  });

  it("passes over lines that are none, and loses nothing behind one that a crash cut off", () => {
    const home = makeFolder();
    writeFileSync(placeIn(home), `${lineOf("one")}no json\nnull\n{"v":2,"text":"later"}\n{"v":1}\n{"v":1,"text":"cut`);
    const { file } = openFile(home);
    expect(file.texts).toEqual(["one"]);
    file.add("two");
    expect(openFile(home).file.texts).toEqual(["one", "two"]);
  });

  it("is bounded: the last texts are kept, and one that is too long is not", () => {
    const home = makeFolder();
    const count = 2 * historyCountMax + 1;
    writeFileSync(placeIn(home), Array.from({ length: count }, (_, index) => lineOf(`text ${index}`)).join(""));
    const { file } = openFile(home);
    expect(file.texts).toHaveLength(historyCountMax);
    expect(file.texts.at(-1)).toBe(`text ${count - 1}`);
    expect(readFileSync(placeIn(home), "utf8").trim().split("\n")).toHaveLength(historyCountMax);
    expect(statSync(placeIn(home)).mode & 0o777).toBe(0o600);
    file.add("x".repeat(20_000));
    file.add("after");
    expect(openFile(home).file.texts.slice(-2)).toEqual([`text ${count - 1}`, "after"]);
  });

  it("is read from its end where it is very long", () => {
    const home = makeFolder();
    const long = "y".repeat(16_000);
    for (let index = 0; index < 300; index++) appendFileSync(placeIn(home), lineOf(`${index} ${long}`));
    const { file } = openFile(home);
    expect(file.texts.at(-1)).toBe(`299 ${long}`);
    expect(file.texts.length).toBeLessThan(300);
    expect(statSync(placeIn(home)).size).toBeLessThan(4_194_304);
    file.add("new");
    expect(openFile(home).file.texts.at(-1)).toBe("new");
  });

  it("is shared: what another chat adds after the file was made shorter is kept too", () => {
    const home = makeFolder();
    const first = openFile(home).file;
    first.add("one");
    writeFileSync(placeIn(home), Array.from({ length: 3000 }, () => lineOf("filler")).join(""));
    openFile(home);
    first.add("two");
    expect(openFile(home).file.texts.at(-1)).toBe("two");
  });

  it("is done without where it cannot be used, which is told once; a home that is missing is not made", () => {
    const home = makeFolder();
    const target = path.join(makeFolder(), "elsewhere");
    writeFileSync(target, "not touched");
    symlinkSync(target, placeIn(home));
    const link = openFile(home);
    link.file.add("one");
    link.file.add("two");
    expect(link.told).toEqual([expect.stringMatching(/Could not read the history .* \(ELOOP\)/)]);
    expect(readFileSync(target, "utf8")).toBe("not touched");

    const other = makeFolder();
    mkdirSync(placeIn(other));
    expect(openFile(other).told).toEqual([expect.stringMatching(/\(EISDIR\)/)]);

    const missing = openFile(path.join(home, "missing"));
    missing.file.add("one");
    expect(missing.told).toEqual([]);
  });
});

describe("what is remembered", () => {
  it("is bounded in memory too", () => {
    const kept: string[] = [];
    const history = new ChatHistory({ texts: [], add: (text) => kept.push(text) });
    for (let index = 0; index <= historyCountMax; index++) history.add(`text ${index}`);
    expect(history.length).toBe(historyCountMax);
    expect(history.at(0)).toBe("text 1");
  });

  it("is found by words, the newest first, small letters standing for both", () => {
    const history = new ChatHistory({ texts: ["Fix it", "run", "fix it", "fix it", "other"], add: () => {} });
    const found = history.search("fix", history.length);
    expect(found).toBe(3);
    expect(history.search("fix", 3)).toBe(0);
    expect(history.search("Fix", history.length)).toBe(0);
    expect(history.search("fix", 0)).toBeUndefined();
    expect(history.search("", history.length)).toBeUndefined();
  });
});
