/** Lines that are pushed, read one at a time. */
export class LineFeed implements AsyncIterable<string> {
  readonly #lines: string[] = [];
  #wake: (() => void) | undefined;
  #isOver = false;

  push(line: string): void {
    this.#lines.push(line);
    this.#wake?.();
  }

  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<string> {
    for (;;) {
      const line = this.#lines.shift();
      if (line !== undefined) yield line;
      else if (this.#isOver) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
