import { cutBefore, firstWhole, readableText } from "./utf8.ts";

/** Keeps the beginning and the end of a stream of bytes in constant memory, and counts what lies between. */
export class CapturedOutput {
  readonly #head: Buffer;
  /** A ring: byte number n of what follows the head stands at n modulo its size. */
  readonly #tail: Buffer;
  #headCount = 0;
  #tailCount = 0;

  /** `bytesMax` in all. A quarter for the head, since errors and results stand at the end. */
  constructor(bytesMax: number) {
    const headBytes = Math.floor(bytesMax / 4);
    this.#head = Buffer.alloc(headBytes);
    this.#tail = Buffer.alloc(bytesMax - headBytes);
  }

  push(chunk: Buffer): void {
    const headBytes = chunk.copy(this.#head, this.#headCount);
    this.#headCount += headBytes;
    const rest = chunk.subarray(headBytes);
    const size = this.#tail.length;
    const kept = rest.subarray(Math.max(0, rest.length - size));
    const start = (this.#tailCount + rest.length - kept.length) % size;
    const untilWrap = kept.copy(this.#tail, start);
    kept.copy(this.#tail, 0, untilWrap);
    this.#tailCount += rest.length;
  }

  /** The text so far: invalid UTF-8 and NUL become U+FFFD, a gap is told as a line of its own. */
  text(): string {
    const head = this.#head.subarray(0, this.#headCount);
    const tail = this.#tailInOrder();
    if (tail.length === this.#tailCount) return readableText(Buffer.concat([head, tail]));
    const headEnd = head.subarray(0, cutBefore(head, head.length));
    const tailStart = tail.subarray(firstWhole(tail));
    const droppedCount = this.#headCount + this.#tailCount - headEnd.length - tailStart.length;
    return `${readableText(headEnd)}\n[... ${droppedCount} bytes dropped ...]\n${readableText(tailStart)}`;
  }

  #tailInOrder(): Buffer {
    const size = this.#tail.length;
    if (this.#tailCount <= size) return this.#tail.subarray(0, this.#tailCount);
    const oldest = this.#tailCount % size;
    return Buffer.concat([this.#tail.subarray(oldest), this.#tail.subarray(0, oldest)]);
  }
}
