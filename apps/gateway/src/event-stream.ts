import type { FastifyReply } from "fastify";
import type { Cancel, Host } from "@turnkeeper/kernel";
import type { PeriodicHandle, PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { Refusal, retryLater } from "./refusal.ts";

/** Proxies cut a connection that is silent for a minute; a comment moves no turn's clock and is no event. */
const heartbeatMs = 15_000;
/** How long a reader waits before it connects again, which EventSource takes from us. */
const reconnectMs = 1000;
/** A client that closed its side reads on, or has gone: then its machine refuses what it is sent, from the second on. */
const secondTryMs = 250;
/** Heartbeats in a row that find the same bytes still unsent: nobody reads there any more. */
const deafBeatsMax = 4;

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** For what is still told on streams when the gateway closes. */
const lastWordsMs = 1000;

/** Why a stream was closed by the gateway; absent where its client left. */
export type StreamEnd = "finished" | "slow-reader" | "client-left";

/** One open stream of server-sent events. */
export interface EventStream {
  /** False once it has ended, for whatever reason: what is sent then goes nowhere. */
  readonly isOpen: boolean;
  /** Settles with why it ended; never rejects. */
  readonly ended: Promise<StreamEnd>;
  /** Queues one event; everything that is queued in one turn of the event loop leaves in one write. */
  send(data: string, id?: string): void;
  /** Resolves once there is room for more: for whoever can wait, since what it sends is in the store. */
  hasRoom(): Promise<void>;
  /** Sends what is queued and ends the answer. */
  end(): void;
}

/** Room for one stream that is not open yet. */
export interface StreamPlace extends Disposable {
  /** Takes over the reply: its head leaves now, and from here on the stream is all there is to answer with. */
  open(reply: FastifyReply): EventStream;
}

export interface EventStreamsDeps {
  readonly host: Host;
  readonly scheduler: Pick<PeriodicScheduler, "schedule">;
}

export interface EventStreamsOptions {
  readonly streamCount: number;
  readonly streamBufferBytes: number;
}

type ServerResponse = FastifyReply["raw"];

class OpenStream implements EventStream {
  readonly ended: Promise<StreamEnd>;
  readonly #raw: ServerResponse;
  readonly #host: Host;
  readonly #bufferBytesMax: number;
  #queued = "";
  readonly #waiters: (() => void)[] = [];
  #isNew = true;
  #cancelFlush: Cancel | undefined;
  #cancelSecondTry: Cancel | undefined;
  #isBlocked = false;
  #hasSent = false;
  #deafBeats = 0;
  #end: StreamEnd | undefined;
  #settle: (end: StreamEnd) => void = () => {};

  constructor(raw: ServerResponse, host: Host, bufferBytesMax: number) {
    this.#raw = raw;
    this.#host = host;
    this.#bufferBytesMax = bufferBytesMax;
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
    raw.on("drain", () => {
      this.#isBlocked = false;
      this.#deafBeats = 0;
      this.#flush();
      this.#tellWaiters();
    });
    // A reset connection is a client that left; without a listener it would end the process.
    raw.on("error", () => this.#close("client-left"));
    raw.on("close", () => this.#close("client-left"));
    raw.on("finish", () => this.#settle("finished"));
    const { socket } = raw;
    const onHalfClosed = (): void => this.#seeWhetherGone();
    socket?.once("end", onHalfClosed);
    raw.once("close", () => socket?.off("end", onHalfClosed));
    if (socket?.readableEnded) onHalfClosed();
    if (raw.destroyed) this.#close("client-left");
  }

  get isOpen(): boolean {
    return this.#end === undefined;
  }

  send(data: string, id?: string): void {
    if (!this.isOpen) return;
    const head = this.#isNew ? `retry: ${reconnectMs}\n` : "";
    this.#isNew = false;
    this.#queue(`${head}${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`);
  }

  #seeWhetherGone(): void {
    if (!this.isOpen) return;
    this.#queue(":\n\n");
    this.#cancelSecondTry = this.#host.timers.after(secondTryMs, () => this.#queue(":\n\n"), { keepAlive: false });
  }

  /** A comment keeps proxies awake, and finds out readers that take nothing any more. */
  beat(): void {
    if (this.#isBlocked) {
      if (++this.#deafBeats >= deafBeatsMax) this.#drop();
      return;
    }
    if (!this.#hasSent && this.isOpen) this.#queue(":\n\n");
    this.#hasSent = false;
  }

  end(): void {
    if (!this.isOpen) return;
    this.#end = "finished";
    this.#cancelFlush?.();
    this.#cancelSecondTry?.();
    this.#raw.end(this.#queued);
    this.#queued = "";
    this.#isBlocked = this.#raw.writableLength > 0;
  }

  async hasRoom(): Promise<void> {
    while (this.isOpen && this.#isHeldUp && this.#waitingLength > this.#bufferBytesMax / 4)
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  /** Whether something will tell of room: what a socket takes without complaint it does not tell of. */
  get #isHeldUp(): boolean {
    return this.#isBlocked || this.#queued !== "";
  }

  /** Characters stand for bytes here: the bound is one of memory, and a string has at least one byte for each. */
  get #waitingLength(): number {
    return this.#queued.length + this.#raw.writableLength;
  }

  #queue(text: string): void {
    // One large event fits where little waits, or what is stored as one could never be told.
    const waiting = this.#waitingLength;
    if (waiting > this.#bufferBytesMax / 4 && waiting + text.length > this.#bufferBytesMax) return this.#drop();
    this.#queued += text;
    this.#cancelFlush ??= this.#host.timers.soon(() => {
      this.#cancelFlush = undefined;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#isBlocked || this.#queued === "" || !this.isOpen) return;
    const text = this.#queued;
    this.#queued = "";
    this.#hasSent = true;
    this.#isBlocked = !this.#raw.write(text);
    if (!this.#isBlocked) this.#tellWaiters();
  }

  #tellWaiters(): void {
    for (const tell of this.#waiters.splice(0)) tell();
  }

  /** A reader that is too slow is cut off. It knows the id of the last event it has, and comes back behind it. */
  #drop(): void {
    this.#close("slow-reader");
    this.#raw.destroy();
  }

  #close(end: StreamEnd): void {
    this.#end ??= end;
    this.#cancelFlush?.();
    this.#cancelSecondTry?.();
    this.#queued = "";
    this.#tellWaiters();
    // The first one counts.
    this.#settle(end);
  }
}

/**
 * The open streams of a gateway: bounded in number and in what each may keep waiting, with one heartbeat timer for all
 * of them. `close` ends every one.
 */
export class EventStreams {
  readonly #deps: EventStreamsDeps;
  readonly #options: EventStreamsOptions;
  readonly #open = new Set<OpenStream>();
  readonly #telling = new Set<Promise<void>>();
  #heartbeat: PeriodicHandle | undefined;
  #placeCount = 0;
  #droppedCount = 0;

  constructor(deps: EventStreamsDeps, options: EventStreamsOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  get openCount(): number {
    return this.#open.size;
  }

  /** Readers that were cut off for being too slow. */
  get droppedCount(): number {
    return this.#droppedCount;
  }

  /**
   * Keeps room for one stream, which its disposal gives back unless it was opened. To be taken before anything is stored
   * for the request: throws a `Refusal` (429) where there is none.
   */
  place(): StreamPlace {
    const count = this.#open.size + this.#placeCount;
    if (count >= this.#options.streamCount)
      throw new Refusal(429, "too_many_streams", `${count} event streams are open; close one, or try later.`, {
        headers: retryLater,
      });
    this.#placeCount++;
    let isKept = true;
    const giveBack = (): void => {
      if (isKept) this.#placeCount--;
      isKept = false;
    };
    const open = (reply: FastifyReply): EventStream => {
      giveBack();
      return this.#openStream(reply);
    };
    return { open, [Symbol.dispose]: giveBack };
  }

  #openStream(reply: FastifyReply): EventStream {
    reply.hijack();
    const { raw } = reply;
    // The head leaves now: whoever waits for the first event knows already that it was accepted.
    raw.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...streamHeaders });
    raw.flushHeaders();
    const stream = new OpenStream(raw, this.#deps.host, this.#options.streamBufferBytes);
    this.#open.add(stream);
    this.#heartbeat ??= this.#deps.scheduler.schedule(() => this.#beat(), heartbeatMs, { name: "sse-heartbeat" });
    void stream.ended.then((end) => {
      this.#open.delete(stream);
      if (end === "slow-reader") this.#droppedCount++;
      if (this.#open.size === 0) this.#stopBeating();
    });
    return stream;
  }

  /** `telling` ends its stream by itself: `close` waits for it a while. */
  async told(telling: Promise<void>): Promise<void> {
    this.#telling.add(telling);
    try {
      await telling;
    } finally {
      this.#telling.delete(telling);
    }
  }

  #beat(): void {
    for (const stream of this.#open) stream.beat();
  }

  #stopBeating(): void {
    void this.#heartbeat?.cancel();
    this.#heartbeat = undefined;
  }

  /** Ends every stream; its readers connect again, here or at whoever answers then. Safe to repeat. */
  async close(): Promise<void> {
    let cancel: Cancel = () => {};
    const timeIsUp = new Promise<void>((resolve) => (cancel = this.#deps.host.timers.after(lastWordsMs, resolve)));
    await Promise.race([Promise.allSettled(this.#telling), timeIsUp]);
    cancel();
    for (const stream of this.#open) stream.end();
    this.#stopBeating();
  }
}
