import type { ChatHistory } from "./chat-history.ts";
import { EditedText } from "./edited-text.ts";
import type { Key } from "./key-decoder.ts";
import { TextLayout } from "./text-layout.ts";
import { offsetAt, placeOf } from "./text-rows.ts";

/** What a key comes to beyond the text itself. */
export type EditingOutcome =
  | { readonly kind: "edited" }
  | { readonly kind: "sent"; readonly text: string }
  | { readonly kind: "interrupted" }
  | { readonly kind: "ended" }
  | { readonly kind: "suspended" }
  | { readonly kind: "cleared-screen" };

export interface EditingOptions {
  /** Absent where answers are typed that are nobody's later. */
  readonly history?: ChatHistory;
  /** What Tab completes: words that a line may begin with. */
  readonly completions?: readonly string[];
  /** How many cells of text a row holds now. */
  readonly columns: () => number;
}

interface Search {
  words: string;
  /** Where in the history the match stands; absent while there is none. */
  index: number | undefined;
  /** What was typed before the search. */
  readonly draft: { readonly text: string; readonly cursor: number };
}

const edited: EditingOutcome = { kind: "edited" };

type Edit = (text: EditedText) => void;

const edits: Readonly<Record<string, Edit>> = {
  left: (text) => text.moveTo(text.before),
  right: (text) => text.moveTo(text.after),
  home: (text) => text.moveTo(text.lineStart),
  end: (text) => text.moveTo(text.lineEnd),
  "ctrl-left": (text) => text.moveTo(text.wordBefore),
  "ctrl-right": (text) => text.moveTo(text.wordAfter),
  "ctrl-home": (text) => text.moveTo(0),
  "ctrl-end": (text) => text.moveTo(text.text.length),
  backspace: (text) => text.deleteTo(text.before),
  delete: (text) => text.deleteTo(text.after),
  "ctrl-k": (text) => text.killTo(text.cursor === text.lineEnd ? text.after : text.lineEnd),
  "ctrl-u": (text) => text.killTo(text.cursor === text.lineStart ? text.before : text.lineStart),
  "ctrl-w": (text) => text.killTo(text.blankBefore),
  "alt-backspace": (text) => text.killTo(text.wordBefore),
  "alt-d": (text) => text.killTo(text.wordAfter),
  "ctrl-y": (text) => text.putBack(),
  "alt-enter": (text) => text.insert("\n"),
};

/** Keys that do what others do. */
const synonyms: Readonly<Record<string, string>> = {
  "ctrl-b": "left",
  "ctrl-f": "right",
  "ctrl-a": "home",
  "ctrl-e": "end",
  "ctrl-p": "up",
  "ctrl-n": "down",
  "ctrl-h": "backspace",
  "shift-backspace": "backspace",
  "ctrl-backspace": "alt-backspace",
  "ctrl-delete": "alt-d",
  "alt-left": "ctrl-left",
  "alt-right": "ctrl-right",
  "alt-b": "ctrl-left",
  "alt-f": "ctrl-right",
  "alt-<": "ctrl-home",
  "alt->": "ctrl-end",
  "shift-enter": "alt-enter",
  "ctrl-enter": "alt-enter",
};

/** Whether Enter goes on in another line: after a backslash that no other one takes the meaning of. */
export function continues(text: string): boolean {
  return /(?:^|[^\\])(?:\\\\)*\\$/.test(text.slice(-64));
}

/**
 * What keys make of a line: the text, the way through the history, the search in it. Pure but for its own state; who
 * draws it reads `text`, `cursor` and `hint`.
 *
 * | state | event | next | effect |
 * | --- | --- | --- | --- |
 * | typing | up in the first row, down in the last | typing | an older or newer text; what was being typed is kept |
 * | typing | Ctrl-R | searching | – |
 * | searching | text, Backspace | searching | the newest match of the words |
 * | searching | Ctrl-R, Ctrl-S | searching | an older, a newer match |
 * | searching | Ctrl-C, Ctrl-G | typing | what was typed before stands again |
 * | searching | Enter | typing | the match is sent |
 * | searching | any other key | typing | the match stands to be edited, and the key does what it does |
 */
export class LineEditing {
  readonly #options: EditingOptions;
  readonly #text = new EditedText();
  readonly #layout = new TextLayout();
  #search: Search | undefined;
  /** Which text of the history stands in the line; its length: what is being typed. */
  #place: number;
  #draft = "";
  /** The column that up and down keep to. */
  #column: number | undefined;
  #candidates: readonly string[] = [];

  constructor(options: EditingOptions) {
    this.#options = options;
    this.#place = options.history?.length ?? 0;
  }

  get text(): string {
    return this.#text.text;
  }

  get cursor(): number {
    return this.#text.cursor;
  }

  get isEmpty(): boolean {
    return this.#text.isEmpty && this.#search === undefined;
  }

  /** What stands below the line: the search, or what Tab may complete to. */
  get hint(): string | undefined {
    if (this.#search) {
      const { words, index } = this.#search;
      const isFound = words === "" || index !== undefined;
      return `${isFound ? "search" : "not found"}: ${words}  (Ctrl-R older, Enter sends, Ctrl-G leaves it)`;
    }
    return this.#candidates.length > 0 ? this.#candidates.join("  ") : undefined;
  }

  clear(): void {
    this.#search = undefined;
    this.#candidates = [];
    this.#replace("");
    this.#draft = "";
    this.#place = this.#options.history?.length ?? 0;
  }

  take(key: Key): EditingOutcome {
    return this.#search ? this.#whileSearching(key, this.#search) : this.#whileTyping(key);
  }

  #whileTyping(key: Key): EditingOutcome {
    this.#candidates = [];
    if (key.kind !== "press") {
      this.#column = undefined;
      this.#text.insert(key.text);
      return edited;
    }
    const name = synonyms[key.name] ?? key.name;
    if (name !== "up" && name !== "down") this.#column = undefined;
    switch (name) {
      case "enter":
        return this.#enter();
      case "ctrl-c":
        return { kind: "interrupted" };
      case "ctrl-d":
        if (this.#text.isEmpty) return { kind: "ended" };
        this.#text.deleteTo(this.#text.after);
        return edited;
      case "ctrl-z":
        return { kind: "suspended" };
      case "ctrl-l":
        return { kind: "cleared-screen" };
      case "ctrl-r":
        return this.#startSearch();
      case "up":
        return this.#vertically(-1);
      case "down":
        return this.#vertically(1);
      case "tab":
        return this.#complete();
      default:
        edits[name]?.(this.#text);
        return edited;
    }
  }

  #enter(): EditingOutcome {
    const { text, cursor, lineEnd } = this.#text;
    if (cursor === lineEnd && continues(text.slice(0, cursor))) {
      this.#text.deleteTo(this.#text.before);
      this.#text.insert("\n");
      return edited;
    }
    this.#options.history?.add(text);
    this.clear();
    return { kind: "sent", text };
  }

  /** Up and down a row; beyond the first and the last one, through the history. */
  #vertically(step: -1 | 1): EditingOutcome {
    const { text, cursor } = this.#text;
    // The row of the cursor, the one that it may go to, and where that one ends.
    const rows = this.#layout.rowsOf(text, this.#options.columns(), { offset: cursor, rowCount: 2 });
    const { row, column } = placeOf(text, rows, cursor);
    const next = row + step;
    if (next >= 0 && next < rows.length) {
      this.#column ??= column;
      this.#text.moveTo(offsetAt(text, rows, { row: next, column: this.#column }));
    } else this.#walk(step);
    return edited;
  }

  #walk(step: -1 | 1): void {
    const { history } = this.#options;
    if (!history) return;
    const place = Math.min(this.#place, history.length) + step;
    if (place < 0 || place > history.length) return;
    if (this.#place >= history.length) this.#draft = this.#text.text;
    this.#place = place;
    this.#replace(history.at(place) ?? this.#draft);
  }

  #complete(): EditingOutcome {
    const before = this.text.slice(0, this.cursor);
    const matching = (this.#options.completions ?? []).filter((word) => before !== "" && word.startsWith(before));
    const [first = ""] = matching;
    let common = first;
    while (!matching.every((word) => word.startsWith(common))) common = common.slice(0, -1);
    if (common.length > before.length) this.#text.insert(common.slice(before.length));
    if (matching.length > 1) this.#candidates = matching;
    return edited;
  }

  #startSearch(): EditingOutcome {
    if (!this.#options.history) return edited;
    this.#search = { words: "", index: undefined, draft: { text: this.text, cursor: this.cursor } };
    return edited;
  }

  #whileSearching(key: Key, search: Search): EditingOutcome {
    const length = this.#options.history?.length ?? 0;
    if (key.kind !== "press") return this.#look(search, search.words + key.text.replaceAll("\n", " "), length);
    switch (synonyms[key.name] ?? key.name) {
      case "ctrl-r":
        return this.#look(search, search.words, search.index ?? length);
      case "ctrl-s":
        return this.#lookNewer(search);
      case "backspace":
        return this.#look(search, search.words.replace(/.$/su, ""), length);
      case "ctrl-c":
      case "ctrl-g":
        this.#search = undefined;
        this.#text.replace(search.draft.text, search.draft.cursor);
        return edited;
      case "escape":
        this.#takeOver(search);
        return edited;
      default:
        this.#takeOver(search);
        return this.#whileTyping(key);
    }
  }

  /** The match is the line now, and up and down go on from it. */
  #takeOver(search: Search): void {
    this.#search = undefined;
    if (search.index === undefined) return;
    this.#draft = search.draft.text;
    this.#place = search.index;
  }

  #look(search: Search, words: string, before: number): EditingOutcome {
    const found = this.#options.history?.search(words, before);
    // An older one that is not there leaves the one that is.
    const isRepeat = words === search.words && search.index !== undefined;
    if (found === undefined && isRepeat) return edited;
    return this.#show(search, words, found);
  }

  #lookNewer(search: Search): EditingOutcome {
    const { history } = this.#options;
    if (!history || search.index === undefined) return edited;
    for (let end = search.index + 2; end <= history.length; end++) {
      const found = history.search(search.words, end);
      if (found !== undefined && found > search.index) return this.#show(search, search.words, found);
    }
    return edited;
  }

  #show(search: Search, words: string, index: number | undefined): EditingOutcome {
    search.words = words;
    search.index = index;
    const text = index === undefined ? undefined : this.#options.history?.at(index);
    if (text === undefined) this.#text.replace(search.draft.text, search.draft.cursor);
    else this.#text.replace(text, Math.max(0, text.toLowerCase().lastIndexOf(words.toLowerCase())));
    return edited;
  }

  #replace(text: string): void {
    this.#column = undefined;
    this.#text.replace(text);
  }
}
