/** Patterns of commands, such as `git status*`: for those that may run unasked, and for those that may not run at all. */

import { readCommandLine } from "./command-words.ts";
import type { CommandLine } from "./command-words.ts";

/** Programs that run what their arguments say: their words may be commands of their own. */
const carriers: ReadonlySet<string> = new Set([
  "bash",
  "builtin",
  "busybox",
  "chroot",
  "command",
  "dash",
  "doas",
  "env",
  "eval",
  "exec",
  "find",
  "flock",
  "ionice",
  "ksh",
  "nice",
  "nohup",
  "parallel",
  "script",
  "setsid",
  "sh",
  "ssh",
  "stdbuf",
  "strace",
  "su",
  "sudo",
  "time",
  "timeout",
  "unshare",
  "watch",
  "xargs",
  "zsh",
]);
// Words before which or behind which a command stands, as bash's grammar has it.
const keywords: ReadonlySet<string> = new Set(["if", "then", "else", "elif", "do", "while", "until", "!", "coproc"]);
const depthMax = 4;

/**
 * Whether the pattern allows the line: the line is one plain command, and its words fit the pattern's one by one. `*`
 * stands for any characters within a word; a pattern that ends in `*` allows further words.
 */
export function allowsCommand(pattern: string, { plain, commands }: CommandLine): boolean {
  const [words = []] = commands;
  return plain && wordsFit(wordsOf(pattern), words, 0, textFits);
}

/**
 * Whether the pattern is met anywhere in the line: in any command of it, with or without its folder, and behind
 * programs that run other commands. It may be met where nothing would run; it cannot see what a program computes.
 */
export function meetsCommand(pattern: string, line: CommandLine): boolean {
  return meets(wordsOf(pattern), line, 0);
}

function meets(pattern: readonly string[], { commands, lost }: CommandLine, depth: number): boolean {
  // What nobody can follow is met by everything.
  return lost || commands.some((words) => meetsWords(pattern, words, depth));
}

function meetsWords(pattern: readonly string[], words: readonly string[], depth: number): boolean {
  const start = words.findIndex((word) => !keywords.has(word) && !/^[A-Za-z_]\w*\+?=/.test(word));
  if (start === -1) return false;
  if (wordsFit(pattern, words, start, nameMeets)) return true;
  if (!carriers.has(baseNameOf(words[start] ?? ""))) return false;
  // Where the carried command begins is the carrier's art: it may be any word, or a line within a word.
  for (let from = start + 1; from < words.length; from++) {
    const word = words[from] ?? "";
    if (wordsFit(pattern, words, from, nameMeets)) return true;
    if (depth < depthMax && /\s/.test(word) && meets(pattern, readCommandLine(word), depth + 1)) return true;
  }
  return false;
}

/** A program that is forbidden is so in any folder; one that is allowed is so as it is written. */
function nameMeets(pattern: string, name: string): boolean {
  return textFits(pattern, name) || textFits(pattern, baseNameOf(name));
}

function baseNameOf(word: string): string {
  return word.slice(word.lastIndexOf("/") + 1);
}

function wordsOf(pattern: string): readonly string[] {
  return pattern.split(/\s+/).filter((word) => word !== "");
}

function wordsFit(
  pattern: readonly string[],
  words: readonly string[],
  from: number,
  nameFits: (pattern: string, name: string) => boolean,
): boolean {
  const last = pattern.at(-1);
  if (last === undefined) return false;
  // A star of its own at the end stands for any further words, none too.
  const fixed = last === "*" ? pattern.slice(0, -1) : pattern;
  const count = words.length - from;
  if (count < Math.max(1, fixed.length) || (count > fixed.length && !last.endsWith("*"))) return false;
  return fixed.every((part, index) => {
    const word = words[from + index] ?? "";
    return index === 0 ? nameFits(part, word) : textFits(part, word);
  });
}

/** Whether a text fits a pattern in which `*` stands for any characters; in time linear in both for each star. */
export function textFits(pattern: string, text: string): boolean {
  const parts = pattern.split("*");
  const [first = "", ...rest] = parts;
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first)) return false;
  let position = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, position);
    if (found === -1) return false;
    position = found + part.length;
  }
  return text.length - last.length >= position && text.endsWith(last);
}
