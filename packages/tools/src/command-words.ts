/**
 * Reads a shell command line far enough to judge it, and says when it cannot.
 *
 * A command line is *plain* when it is one command whose words stand there literally: then what bash will run is what
 * was read. Anything that makes bash compute, combine, redirect or match is not plain. Of such a line the commands are
 * still found as well as they can be, for rules that forbid: a rule that allows must not ask for them.
 */

export interface CommandLine {
  readonly plain: boolean;
  /** The words of each command that was found, quotes taken off; one when the line is plain. */
  readonly commands: readonly (readonly string[])[];
  /** Commands inside commands, deeper than anybody writes them, that were not looked at. */
  readonly lost: boolean;
}

const depthMax = 50;
// What Linux takes as one argument; a longer line is never run.
const charactersMax = 131_072;

// Ends a command, or begins one inside another; an assignment, a comment and a pattern are seen by other means.
const separators: ReadonlySet<string> = new Set([";", "&", "|", "\n", "\r", "(", ")", "`", "{", "}"]);
const redirections: ReadonlySet<string> = new Set(["<", ">"]);
// Bash would put something else in their place: a variable, file names, a home folder, an earlier command.
const computing: ReadonlySet<string> = new Set(["$", "*", "?", "[", "]", "~", "!", "#", "^"]);

const ordinary = /[A-Za-z0-9_./,:@%+=-]/;
const run = /[A-Za-z0-9_./,:@%+=-]*/y;

export function readCommandLine(text: string): CommandLine {
  if (text.length > charactersMax) return { plain: false, commands: [], lost: true };
  return new Reader(text).read();
}

class Reader {
  readonly #text: string;
  #position = 0;
  #plain = true;
  #lost = false;
  #depth = 0;
  readonly #commands: string[][] = [];
  #words: string[] = [];
  #word: string | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  read(): CommandLine {
    while (this.#position < this.#text.length) this.#readOne(this.#next());
    this.#endCommand();
    const plain = this.#plain && this.#commands.length === 1;
    return { plain, commands: this.#commands, lost: this.#lost };
  }

  #next(): string {
    const character = this.#text[this.#position] ?? "";
    this.#position += 1;
    return character;
  }

  #readOne(character: string): void {
    if (ordinary.test(character)) {
      // Most of what there is, in one go.
      run.lastIndex = this.#position;
      const rest = run.exec(this.#text)?.[0] ?? "";
      this.#position += rest.length;
      return this.#add(character + rest);
    }
    if (character === " " || character === "\t") return this.#endWord();
    if (character === "'") return this.#readSingleQuoted();
    if (character === '"') return this.#readDoubleQuoted();
    if (character === "\\") {
      // A quoted character, or a line that goes on: bash takes both out.
      this.#plain = false;
      const quoted = this.#next();
      if (quoted !== "\n") this.#add(quoted);
      return;
    }
    if (separators.has(character)) {
      this.#plain = false;
      return this.#endCommand();
    }
    if (redirections.has(character)) {
      this.#plain = false;
      // What follows is a file; a substitution such as <(command) begins a command at its bracket.
      return this.#endWord();
    }
    // Inside a word these mean themselves, but telling where is bash's art: what might be computed is not plain.
    if (computing.has(character) || isUnusual(character)) this.#plain = false;
    // $'…' and $"…" are quotes of their own kind; the sign goes, the quote is read as one.
    if (character === "$" && /^['"]/.test(this.#text.slice(this.#position, this.#position + 1))) return;
    this.#add(character);
  }

  #readSingleQuoted(): void {
    const end = this.#text.indexOf("'", this.#position);
    if (end === -1) this.#plain = false;
    const stop = end === -1 ? this.#text.length : end;
    this.#add(this.#text.slice(this.#position, stop));
    this.#position = stop + 1;
  }

  #readDoubleQuoted(): void {
    this.#add("");
    for (;;) {
      if (this.#position >= this.#text.length) {
        this.#plain = false;
        return;
      }
      const character = this.#next();
      if (character === '"') return;
      if (character === "\\") {
        this.#plain = false;
        this.#add(this.#next());
        continue;
      }
      // A substitution inside quotes runs all the same.
      if (character === "`") {
        this.#readInner("`");
        continue;
      }
      if (character === "$" && this.#text[this.#position] === "(") {
        this.#position += 1;
        this.#readInner(")");
        continue;
      }
      if (character === "$" || character === "!") this.#plain = false;
      this.#add(character);
    }
  }

  /** Commands up to the end of a substitution; then the quotes around it go on. */
  #readInner(end: ")" | "`"): void {
    this.#plain = false;
    this.#endCommand();
    if (this.#depth === depthMax) {
      this.#lost = true;
      return;
    }
    this.#depth += 1;
    for (let openCount = 1; this.#position < this.#text.length;) {
      const character = this.#next();
      if (character === "(") openCount += 1;
      if (character === end && (end === "`" || --openCount === 0)) break;
      this.#readOne(character);
    }
    this.#depth -= 1;
    this.#endCommand();
  }

  #add(text: string): void {
    this.#word = (this.#word ?? "") + text;
  }

  #endWord(): void {
    if (this.#word !== undefined) this.#words.push(this.#word);
    this.#word = undefined;
  }

  #endCommand(): void {
    this.#endWord();
    if (this.#words.length > 0) this.#commands.push(this.#words);
    this.#words = [];
  }
}

/** Control characters, and white space that bash does not take for one while a reader does. */
function isUnusual(character: string): boolean {
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(character) || (character !== " " && /\s/.test(character));
}
