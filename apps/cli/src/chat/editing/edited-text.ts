import { graphemesOf } from "../../display/cell-width.ts";

/** As far as one character as people see it may reach; what goes on further is several. */
const graphemeLengthMax = 128;
/** The same for a word, so that moving in a text of a mebibyte costs what moving in a short one does. */
const wordLengthMax = 1024;

/** A text with a cursor between two of its characters, as people count them. Offsets are in UTF-16 code units. */
export class EditedText {
  #text = "";
  #cursor = 0;
  /** What was killed last, to be put back elsewhere. */
  #killed = "";
  /** Kills that follow one another are one. */
  #isKilling = false;

  get text(): string {
    return this.#text;
  }

  get cursor(): number {
    return this.#cursor;
  }

  get isEmpty(): boolean {
    return this.#text === "";
  }

  /** Another text, with the cursor at its end or where it is said. */
  replace(text: string, cursor: number = text.length): void {
    this.#text = text;
    this.#cursor = Math.min(cursor, text.length);
    this.#isKilling = false;
  }

  moveTo(cursor: number): void {
    this.#cursor = Math.max(0, Math.min(cursor, this.#text.length));
    this.#isKilling = false;
  }

  insert(text: string): void {
    this.#splice(this.#cursor, this.#cursor, text);
  }

  /** Deletes up to there, without a trace. */
  deleteTo(offset: number): void {
    this.#splice(Math.min(offset, this.#cursor), Math.max(offset, this.#cursor), "");
  }

  /** Takes out what stands up to there, so that it can be put back. */
  killTo(offset: number): void {
    const [start, end] = [Math.min(offset, this.#cursor), Math.max(offset, this.#cursor)];
    const taken = this.#text.slice(start, end);
    const before = this.#isKilling ? this.#killed : "";
    if (taken !== "") this.#killed = offset < this.#cursor ? taken + before : before + taken;
    this.#splice(start, end, "");
    this.#isKilling = true;
  }

  putBack(): void {
    this.insert(this.#killed);
  }

  /** Where the character before the cursor begins. */
  get before(): number {
    let last = "";
    for (const grapheme of graphemesOf(this.#text.slice(Math.max(0, this.#cursor - graphemeLengthMax), this.#cursor)))
      last = grapheme;
    return this.#cursor - last.length;
  }

  /** Where the character behind the cursor ends. */
  get after(): number {
    for (const grapheme of graphemesOf(this.#text.slice(this.#cursor, this.#cursor + graphemeLengthMax)))
      return this.#cursor + grapheme.length;
    return this.#cursor;
  }

  get lineStart(): number {
    return this.#text.lastIndexOf("\n", this.#cursor - 1) + 1;
  }

  get lineEnd(): number {
    const end = this.#text.indexOf("\n", this.#cursor);
    return end < 0 ? this.#text.length : end;
  }

  /** Where the word before the cursor begins. */
  get wordBefore(): number {
    return this.#cursor - this.#tail(/[\p{L}\p{M}\p{N}_]*[^\p{L}\p{M}\p{N}_]*$/u).length;
  }

  /** Where the word behind the cursor ends. */
  get wordAfter(): number {
    const ahead = this.#text.slice(this.#cursor, this.#cursor + wordLengthMax);
    return this.#cursor + (/^[^\p{L}\p{M}\p{N}_]*[\p{L}\p{M}\p{N}_]*/u.exec(ahead)?.[0].length ?? 0);
  }

  /** Where what stands before the cursor up to white space begins. */
  get blankBefore(): number {
    return this.#cursor - this.#tail(/\S*\s*$/).length;
  }

  #tail(pattern: RegExp): string {
    return pattern.exec(this.#text.slice(Math.max(0, this.#cursor - wordLengthMax), this.#cursor))?.[0] ?? "";
  }

  #splice(start: number, end: number, text: string): void {
    this.#text = this.#text.slice(0, start) + text + this.#text.slice(end);
    this.#cursor = start + text.length;
    this.#isKilling = false;
  }
}
