import type { WriteStream } from "node:tty";

/** The environment as the process got it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * One of the process's two output streams, with what may be drawn on it. A reader that goes away (`| head -1`) is a
 * fact to act on, not an error: later writes are dropped and `onGone` tells whoever produces.
 */
export class Output {
  readonly #stream: WriteStream;
  readonly #goneListeners = new Set<() => void>();
  readonly isTerminal: boolean;
  /** Whether the cursor can be moved: a terminal that is not dumb. */
  readonly canRedraw: boolean;
  readonly hasColour: boolean;
  #failure: NodeJS.ErrnoException | undefined;

  constructor(stream: WriteStream, environment: Environment) {
    this.#stream = stream;
    this.isTerminal = stream.isTTY;
    this.canRedraw = this.isTerminal && environment["TERM"] !== "dumb";
    this.hasColour = this.canRedraw && !environment["NO_COLOR"];
    stream.on("error", (error: NodeJS.ErrnoException) => this.#lose(error));
  }

  /** Asked of the terminal each time: it may have been resized while the process was stopped. */
  get columns(): number {
    return this.#size[0] || 80;
  }

  get rows(): number {
    return this.#size[1] || 24;
  }

  /** Calls `listener` whenever the terminal has another size. Returns the way out. */
  onResize(listener: () => void): () => void {
    this.#stream.on("resize", listener);
    return () => this.#stream.removeListener("resize", listener);
  }

  /** The stream itself, for readline, which draws its own prompt. */
  get stream(): WriteStream {
    return this.#stream;
  }

  get isGone(): boolean {
    return this.#failure !== undefined;
  }

  /** Why nothing can be written any more, unless it is merely that nobody reads. */
  get failure(): NodeJS.ErrnoException | undefined {
    const quiet = ["EPIPE", "EIO", "ECONNRESET", "ERR_STREAM_DESTROYED"];
    return quiet.includes(this.#failure?.code ?? "EPIPE") ? undefined : this.#failure;
  }

  write(text: string): void {
    if (!this.isGone && text !== "") this.#stream.write(text);
  }

  line(text: string): void {
    this.write(`${text}\n`);
  }

  /** Resolves once the reader has caught up, or is gone: a producer that waits for it needs no memory of its own. */
  async ready(): Promise<void> {
    if (this.isGone || !this.#stream.writableNeedDrain) return;
    await this.#until((done) => {
      this.#stream.once("drain", done);
      return () => this.#stream.removeListener("drain", done);
    });
  }

  /** Resolves once everything written has left the process: `process.exit` would cut a pipe at what it holds. */
  async flush(): Promise<void> {
    if (this.isGone) return;
    await this.#until((done) => {
      this.#stream.write("", () => done());
      return () => {};
    });
  }

  /** Calls `listener` once when nobody reads any more; at once where that is known already. Returns the way out. */
  onGone(listener: () => void): () => void {
    if (this.isGone) listener();
    else this.#goneListeners.add(listener);
    return () => void this.#goneListeners.delete(listener);
  }

  get #size(): readonly number[] {
    if (!this.isTerminal) return [];
    try {
      return this.#stream.getWindowSize();
    } catch {
      // The terminal is gone; a write will tell.
      return [];
    }
  }

  async #until(start: (done: () => void) => () => void): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        stop();
        forget();
        resolve();
      };
      let stop = (): void => {};
      const forget = this.onGone(done);
      stop = start(done);
    });
  }

  #lose(error: NodeJS.ErrnoException): void {
    if (this.#failure) return;
    this.#failure = error;
    const listeners = [...this.#goneListeners];
    this.#goneListeners.clear();
    for (const listener of listeners) listener();
  }
}
