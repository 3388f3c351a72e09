/** Reads a gateway's server-sent events as a client does, until it has enough, the stream ends, or it breaks. */
export interface ReadEvent {
  readonly type: string;
  readonly turnId?: string;
  readonly text?: string;
  readonly outcome?: string;
  readonly reason?: string;
}

export class EventReader {
  readonly events: ReadEvent[] = [];
  /** What `text.delta` told, in one. */
  text = "";
  lastId = "";
  readonly #reader: ReadableStreamDefaultReader<string>;
  #rest = "";

  constructor(response: Response) {
    if (response.status !== 200 || !response.body) throw new Error(`No event stream: ${response.status}`);
    this.#reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Reads on to the first event that is so. Rejects where the stream ends without it. */
  async until(isEnough: (event: ReadEvent) => boolean): Promise<void> {
    let looked = this.events.length;
    for (;;) {
      while (looked < this.events.length) {
        const event = this.events[looked++];
        if (event && isEnough(event)) return;
      }
      if (!(await this.#readOn())) throw new Error(`The stream ended: ${JSON.stringify(this.events)}`);
    }
  }

  /** Reads to the end of the stream, or to where its connection breaks. */
  async toItsEnd(): Promise<void> {
    while (await this.#readOn());
  }

  leave(): void {
    void this.#reader.cancel();
  }

  async #readOn(): Promise<boolean> {
    const next = await this.#reader.read().catch(() => undefined);
    if (!next || next.done) return false;
    this.#rest += next.value;
    const blocks = this.#rest.split("\n\n");
    this.#rest = blocks.pop() ?? "";
    for (const block of blocks) this.#take(block.split("\n"));
    return true;
  }

  #take(lines: readonly string[]): void {
    const field = (name: string): string | undefined =>
      lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const data = field("data");
    if (data === undefined) return;
    this.lastId = field("id") ?? this.lastId;
    const event = JSON.parse(data) as ReadEvent;
    if (event.type === "text.delta") this.text += event.text ?? "";
    this.events.push(event);
  }
}
