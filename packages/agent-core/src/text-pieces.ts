// V8 builds a rope of every delta otherwise: 32 bytes a node, and any look at the text flattens the whole of it.
const pieceLength = 1024;

/** Streamed text, collected in linear time and joined only when it is read. */
export class TextPieces {
  readonly #pieces: string[] = [];
  #tail = "";
  #isBlank = true;

  add(delta: string): void {
    this.#isBlank &&= delta.trim() === "";
    this.#tail += delta;
    if (this.#tail.length < pieceLength) return;
    this.#pieces.push(this.#tail);
    this.#tail = "";
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0 && this.#tail.length === 0;
  }

  /** Nothing but white space, if anything. */
  get isBlank(): boolean {
    return this.#isBlank;
  }

  /** The whole text. Reading does not change what was collected. */
  join(): string {
    return this.#pieces.join("") + this.#tail;
  }
}
