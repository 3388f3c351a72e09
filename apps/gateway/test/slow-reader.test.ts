import { Writable } from "node:stream";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { FastifyReply } from "fastify";
import { describe, expect, it } from "vitest";
import { EventStreams } from "../src/event-stream.ts";
import type { EventStream } from "../src/event-stream.ts";

/** The answer of a client that takes a piece whenever it is told to, and none by itself. */
class UnreadAnswer extends Writable {
  taken = "";
  #take: (() => void) | undefined;

  constructor(highWaterMark: number) {
    super({ highWaterMark });
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, taken: () => void): void {
    this.#take = () => {
      this.taken += chunk.toString();
      taken();
    };
  }

  take(): void {
    const take = this.#take;
    this.#take = undefined;
    take?.();
  }

  writeHead(): this {
    return this;
  }

  flushHeaders(): void {}
}

interface Opened {
  readonly host: VirtualHost;
  readonly streams: EventStreams;
  readonly stream: EventStream;
  readonly answer: UnreadAnswer;
  close(): Promise<void>;
}

function open(streamBufferBytes: number, highWaterMark = 100): Opened {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const streams = new EventStreams({ host, scheduler }, { streamCount: 1, streamBufferBytes });
  const answer = new UnreadAnswer(highWaterMark);
  const reply = { raw: answer, hijack: () => {}, getHeaders: () => ({}) } as unknown as FastifyReply;
  const stream = streams.place().open(reply);
  const close = async (): Promise<void> => {
    await Promise.all([streams.close(), scheduler.close(), host.advance(2000)]);
    expect(host.pendingTimerCount()).toBe(0);
  };
  return { host, streams, stream, answer, close };
}

describe("a reader", () => {
  it("that takes nothing while more comes is cut off once so much waits for it, and its place is free", async () => {
    const { host, streams, stream, answer, close } = open(4000);
    for (let count = 0; count < 3; count++) {
      stream.send("x".repeat(1000), `t:${count}`);
      await host.advance(1);
    }
    expect(stream.isOpen).toBe(true);
    stream.send("x".repeat(1000), "t:3");
    expect([stream.isOpen, answer.destroyed]).toEqual([false, true]);
    expect(await stream.ended).toBe("slow-reader");
    expect([streams.openCount, streams.droppedCount]).toEqual([0, 1]);
    await close();
  });

  it("that takes what comes is never cut off, nor is one who is sent a single event that is larger than that", async () => {
    const { host, streams, stream, answer, close } = open(4000);
    stream.send("y".repeat(10_000), "t:0");
    for (let count = 1; count < 50; count++) {
      await host.advance(1);
      answer.take();
      await new Promise((resolve) => setImmediate(resolve));
      stream.send("x".repeat(1000), `t:${count}`);
    }
    expect([stream.isOpen, streams.droppedCount]).toEqual([true, 0]);
    expect(answer.taken).toContain("id: t:47\n");
    answer.destroy();
    await stream.ended;
    await close();
  });

  it("is waited for while it takes nothing, but not for what its socket takes without complaint", async () => {
    const { host, stream, answer, close } = open(4000);
    stream.send("x".repeat(2000), "t:0");
    let hasRoom = false;
    const waiting = stream.hasRoom().then(() => (hasRoom = true));
    await host.advance(10);
    expect(hasRoom).toBe(false);
    answer.take();
    await waiting;
    answer.destroy();
    await stream.ended;
    await close();

    // A socket that has room for more than a quarter of what may wait tells nobody that it has sent it.
    const small = open(4000, 10_000);
    small.stream.send("x".repeat(2000), "t:0");
    const roomy = small.stream.hasRoom();
    await small.host.advance(10);
    await roomy;
    small.answer.destroy();
    await small.stream.ended;
    await small.close();
  });

  it("that takes nothing while nothing comes is cut off within a few heartbeats, and one who takes something is not", async () => {
    const { host, streams, stream, answer, close } = open(4000);
    stream.send("x".repeat(1000), "t:0");
    await host.advance(45_000);
    answer.take();
    await new Promise((resolve) => setImmediate(resolve));
    stream.send("x".repeat(1000), "t:1");
    await host.advance(45_000);
    expect(stream.isOpen).toBe(true);
    await host.advance(30_000);
    expect(await stream.ended).toBe("slow-reader");
    expect([answer.destroyed, streams.droppedCount]).toEqual([true, 1]);
    await close();
  });
});
