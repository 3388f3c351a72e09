/** One server-sent event; `id` is the last one that was named, as the standard has it. */
export interface ServerEvent {
  readonly id: string | undefined;
  readonly data: string;
}

/** Reads server-sent events (the WHATWG format) from text that comes in pieces of any size. */
export class EventParser {
  #rest = "";
  #data: string[] = [];
  #id: string | undefined;
  #retryMs: number | undefined;

  /** How long the server wants a reader to wait before it comes back; absent until it says so. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  *feed(chunk: string): Generator<ServerEvent> {
    // A large event comes in many pieces, and only one of them ends a line.
    if (!/[\r\n]/.test(chunk)) {
      this.#rest += chunk;
      return;
    }
    const text = this.#rest + chunk;
    // A carriage return at the end may be the first half of a line's end.
    const whole = text.endsWith("\r") ? text.length - 1 : text.length;
    const lines = text.slice(0, whole).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + text.slice(whole);
    for (const line of lines) {
      const event = this.#take(line);
      if (event) yield event;
    }
  }

  #take(line: string): ServerEvent | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    // Without a name it is a comment.
    if (colon === 0) return undefined;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.#data.push(value);
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.#retryMs = Number(value);
    return undefined;
  }

  #dispatch(): ServerEvent | undefined {
    if (this.#data.length === 0) return undefined;
    const data = this.#data.join("\n");
    this.#data = [];
    return { id: this.#id, data };
  }
}
