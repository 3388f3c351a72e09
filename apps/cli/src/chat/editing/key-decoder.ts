import { StringDecoder } from "node:string_decoder";

/** What a person did: typed characters, pasted text, or pressed a key that has a name (`enter`, `ctrl-c`, `alt-left`). */
export type Key =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "paste"; readonly text: string }
  | { readonly kind: "press"; readonly name: string };

const pasteStart = "\u001b[200~";
const pasteEnd = "\u001b[201~";
/** Longer than any key of any terminal: what goes on after it is no sequence. */
const sequenceLengthMax = 64;

const byFinal: Readonly<Record<string, string>> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  F: "end",
  H: "home",
};
const byNumber: Readonly<Record<string, string>> = {
  1: "home",
  3: "delete",
  4: "end",
  7: "home",
  8: "end",
};
const byCode: Readonly<Record<number, string>> = {
  8: "backspace",
  9: "tab",
  10: "enter",
  13: "enter",
  27: "escape",
  127: "backspace",
};

const press = (name: string): Key => ({ kind: "press", name });
/** Terminals end a pasted line as Enter does. */
const asLines = (text: string): string => text.replaceAll(/\r\n?/g, "\n");

/** A name with what was held beside it; terminals count from one, in bits: shift, alt, ctrl. */
function modified(name: string, modifier: string | undefined): string {
  const bits = Math.max(0, Number.parseInt(modifier ?? "1", 10) - 1) || 0;
  return `${bits & 4 ? "ctrl-" : ""}${bits & 2 ? "alt-" : ""}${bits & 1 ? "shift-" : ""}${name}`;
}

/** A key that a terminal tells by its code point, with what was held beside it. */
function keyOfCode(code: string | undefined, modifier: string | undefined): Key | undefined {
  const point = Number.parseInt(code ?? "", 10);
  const name = byCode[point];
  if (name !== undefined) return press(modified(name, modifier));
  if (!(point >= 32 && point <= 0x10_ffff)) return undefined;
  const character = String.fromCodePoint(point);
  const isPlain = modifier === undefined || modifier === "1" || modifier.startsWith("2");
  return isPlain ? { kind: "text", text: character } : press(modified(character.toLowerCase(), modifier));
}

function keyOfControl(character: string): Key | undefined {
  const code = character.charCodeAt(0);
  const name = byCode[code];
  if (name !== undefined) return press(name);
  return code >= 1 && code <= 26 ? press(`ctrl-${String.fromCharCode(code + 96)}`) : undefined;
}

/**
 * Makes keys of what a terminal sends, however it is cut: across reads, in the middle of a character or of a sequence.
 * Sequences that mean nothing here are left out whole, so that nothing of them becomes text. What is pasted is text to
 * its end, whatever it holds; a lone Ctrl-C ends a paste whose end was lost.
 */
export class KeyDecoder {
  readonly #bytes = new StringDecoder("utf8");
  /** The beginning of a sequence whose end has not come. */
  #rest = "";
  #isPasting = false;

  /** Whether more may come of what has come: after a while without it, `flush`. */
  get isWaiting(): boolean {
    return this.#rest !== "" && !this.#isPasting;
  }

  get isPasting(): boolean {
    return this.#isPasting;
  }

  decode(chunk: Buffer): readonly Key[] {
    if (this.#isPasting && chunk.length === 1 && chunk[0] === 3) {
      this.#isPasting = false;
      this.#rest = "";
      return [press("ctrl-c")];
    }
    const text = this.#rest + this.#bytes.write(chunk);
    this.#rest = "";
    const keys: Key[] = [];
    let index = 0;
    while (index < text.length) {
      const next = this.#isPasting ? this.#paste(text, index, keys) : this.#key(text, index, keys);
      if (next === undefined) {
        this.#rest = text.slice(index);
        break;
      }
      index = next;
    }
    return keys;
  }

  /** Nothing followed: an Escape that stands alone; a sequence that has no end is none. */
  flush(): readonly Key[] {
    const rest = this.#rest;
    this.#rest = "";
    return rest === "\u001b" ? [press("escape")] : [];
  }

  /** Takes pasted text up to its end; answers where what follows begins, nothing while the end may be cut in two. */
  #paste(text: string, index: number, keys: Key[]): number | undefined {
    const end = text.indexOf(pasteEnd, index);
    let until = end;
    if (end < 0) {
      until = text.length;
      for (let length = Math.min(pasteEnd.length - 1, text.length - index); length > 0; length--) {
        if (!text.endsWith(pasteEnd.slice(0, length))) continue;
        until = text.length - length;
        break;
      }
      // The other half of a line's end may follow.
      if (until === text.length && text.endsWith("\r")) until--;
    }
    if (until > index) keys.push({ kind: "paste", text: asLines(text.slice(index, until)) });
    if (end >= 0) {
      this.#isPasting = false;
      return end + pasteEnd.length;
    }
    if (until === text.length) return until;
    this.#rest = text.slice(until);
    return text.length;
  }

  /** Takes one key; answers where the next one begins, nothing while its end has not come. */
  #key(text: string, index: number, keys: Key[]): number | undefined {
    const character = text[index] ?? "";
    if (character === "\u001b") return this.#sequence(text, index, keys);
    const run = /[^\p{Cc}]+/uy;
    run.lastIndex = index;
    const typed = run.exec(text)?.[0];
    if (typed !== undefined) {
      keys.push({ kind: "text", text: typed });
      return index + typed.length;
    }
    if (text.startsWith("\r\n", index)) {
      keys.push(press("enter"));
      return index + 2;
    }
    const key = keyOfControl(character);
    if (key) keys.push(key);
    return index + 1;
  }

  #sequence(text: string, index: number, keys: Key[]): number | undefined {
    const second = text[index + 1];
    if (second === undefined) return undefined;
    if (second === "[" || second === "O") return this.#controlSequence(text, index, keys);
    if (second === "\u001b") {
      keys.push(press("escape"));
      return index + 1;
    }
    const character = String.fromCodePoint(text.codePointAt(index + 1) ?? 0);
    const control = keyOfControl(character);
    if (control?.kind === "press") keys.push(press(`alt-${control.name}`));
    else keys.push(press(`alt-${character.toLowerCase()}`));
    return index + 1 + character.length;
  }

  #controlSequence(text: string, index: number, keys: Key[]): number | undefined {
    const from = index + 1;
    const whole = /(?:\[\[[A-E]|\[([0-?]*)[ -/]*([@-~])|O(\d*)([@-~]))/y;
    whole.lastIndex = from;
    const found = whole.exec(text);
    if (!found) {
      // No sequence goes on in such a way: what introduced it is dropped, and the rest is read as what it is.
      const mayGoOn = text.length - from <= sequenceLengthMax && /^(?:\[[0-?]*[ -/]*|O\d*)$/.test(text.slice(from));
      return mayGoOn ? undefined : from + 1;
    }
    const [all, parameters = "", final = found[4] ?? ""] = found;
    if (all === pasteStart.slice(1)) this.#isPasting = true;
    else {
      const key = found[3] === undefined ? this.#named(parameters, final) : this.#applicationKey(found[3], final);
      if (key) keys.push(key);
    }
    return from + all.length;
  }

  /** Keys in the mode that full-screen programs leave behind, and Enter of the number pad. */
  #applicationKey(modifier: string, final: string): Key | undefined {
    return final === "M" ? press("enter") : this.#pressed(byFinal[final], modifier || undefined);
  }

  #named(parameters: string, final: string): Key | undefined {
    const [first, second, third] = parameters.split(";").map((one) => one.split(":")[0]);
    if (final === "u") return keyOfCode(first, second);
    if (final === "~" && first === "27") return keyOfCode(third, second);
    if (final === "~") return this.#pressed(byNumber[first ?? ""], second);
    return this.#pressed(byFinal[final], second);
  }

  #pressed(name: string | undefined, modifier: string | undefined): Key | undefined {
    return name === undefined ? undefined : press(modified(name, modifier));
  }
}
