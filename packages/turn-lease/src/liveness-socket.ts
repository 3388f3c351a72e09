/**
 * The question one process asks another: "is this holder or runner active with you?", and the wake-up that rides on
 * it. One JSON line each way over a unix socket, bounded in size and time. The kernel answers for a process that has
 * ended (refused), and accepts for one that is stopped or busy (no answer).
 */
import { chmod } from "node:fs/promises";
import { createConnection, createServer } from "node:net";
import type { Socket } from "node:net";
import type { Timers } from "@turnkeeper/kernel";

export interface LivenessRequest {
  /** A holder or runner. */
  readonly id?: string | undefined;
  /** Wakes whoever waits or works on this session. */
  readonly wake?: string | undefined;
  /** Whether what the id says of its work is asked for too. */
  readonly status?: boolean | undefined;
}

/** What a holder says of its work when it is asked: plain JSON, for people. Nothing is decided by it. */
export type HolderStatus = Readonly<Record<string, unknown>>;

export interface LivenessAnswer {
  readonly instanceId: string;
  /** Whether the id is active there. */
  readonly active: boolean;
  /** Whether somebody there heard the wake-up. */
  readonly woken: boolean;
  readonly status?: HolderStatus;
}

export type AskOutcome =
  | { readonly kind: "answered"; readonly answer: LivenessAnswer }
  /** Nobody listens on the socket any more: its process has ended, if the socket is of this boot. */
  | { readonly kind: "refused" }
  /** There is no such socket in this view of the file system. */
  | { readonly kind: "absent" }
  /** Stopped, busy, not allowed, overloaded: nothing may be concluded. */
  | { readonly kind: "no-answer" };

/** Longer than any line we write: a session id of 300 characters is at most 1,200 bytes. */
const lineBytesMax = 4_096;
/** How long a client may take to say its line. */
const requestTimeMs = 1_000;
/** A living process answers within a millisecond. Shorter than a poll, so that a stopped one does not slow the waiter. */
const answerTimeMs = 200;

/** Reads one line and hands it over; anything longer, or later than `timeMs`, ends in `undefined`. */
function readLine(socket: Socket, timers: Timers, timeMs: number, onLine: (line: string | undefined) => void): void {
  let bytes = Buffer.alloc(0);
  let isDone = false;
  const done = (line?: string): void => {
    if (isDone) return;
    isDone = true;
    disarm();
    onLine(line);
  };
  // What came while this process was busy waits in the socket: it is read before its silence is judged.
  const judge = (): void => void (disarm = timers.afterPoll(() => done()));
  let disarm = timers.after(timeMs, judge, { keepAlive: false });
  socket.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    const end = bytes.indexOf(10);
    if (end >= 0) done(bytes.toString("utf8", 0, end));
    else if (bytes.length > lineBytesMax) done();
  });
  socket.on("end", () => done());
  socket.on("close", () => done());
}

function parse(line: string | undefined): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line ?? "");
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function object(value: unknown): HolderStatus | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

/** A status that does not fit into the line is left out: the answer that decides something comes first. */
function lineOf(answer: LivenessAnswer): string {
  const line = JSON.stringify(answer);
  return Buffer.byteLength(line) < lineBytesMax ? line : JSON.stringify({ ...answer, status: undefined });
}

/** Listens on `path` and answers until it is closed. It keeps no process alive, and closing it removes its file. */
export async function serveLiveness(
  timers: Timers,
  path: string,
  answer: (request: LivenessRequest) => LivenessAnswer,
): Promise<{ readonly close: () => Promise<void> }> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.unref();
    socket.on("error", () => socket.destroy());
    socket.on("close", () => open.delete(socket));
    readLine(socket, timers, requestTimeMs, (line) => {
      const request = parse(line);
      if (!request) return socket.destroy();
      const { id, wake, status } = request;
      socket.write(`${lineOf(answer({ id: text(id), wake: text(wake), status: status === true }))}\n`);
      return socket.destroySoon();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // Exclusive: in a cluster worker the primary would otherwise listen, and answer for a worker that died.
    server.listen({ path, exclusive: true }, resolve);
  });
  // An error of one accept (no file descriptor left) loses one question, which its asker repeats.
  server.on("error", () => {});
  server.unref();
  await chmod(path, 0o600);
  return {
    close: async () => {
      for (const socket of open) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Asks the instance behind `path`. Never rejects. */
export async function askLiveness(timers: Timers, path: string, request: LivenessRequest): Promise<AskOutcome> {
  return await new Promise<AskOutcome>((resolve) => {
    const socket = createConnection({ path });
    const settle = (outcome: AskOutcome): void => {
      socket.destroy();
      resolve(outcome);
    };
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED") settle({ kind: "refused" });
      else settle({ kind: error.code === "ENOENT" ? "absent" : "no-answer" });
    });
    const heard = (line: string | undefined): void => {
      const answer = parse(line);
      const instanceId = text(answer?.["instanceId"]);
      if (instanceId === undefined) return settle({ kind: "no-answer" });
      const status = object(answer?.["status"]);
      return settle({
        kind: "answered",
        answer: {
          instanceId,
          active: answer?.["active"] === true,
          woken: answer?.["woken"] === true,
          ...(status ? { status } : {}),
        },
      });
    };
    // The kernel connects or refuses at once, so its time begins with the question.
    socket.on("connect", () => {
      socket.write(`${JSON.stringify(request)}\n`);
      readLine(socket, timers, answerTimeMs, heard);
    });
  });
}
