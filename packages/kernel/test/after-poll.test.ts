import { mkdtempSync, rmSync } from "node:fs";
import { createServer, connect } from "node:net";
import type { Server, Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

/** The two ends of a unix socket: what one writes waits in the kernel when `write` returns. */
let near: Socket;
let far: Socket;
let server: Server;
let folder: string;

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "after-poll-"));
  const socketPath = path.join(folder, "s");
  far = await new Promise<Socket>((resolve) => {
    server = createServer(resolve);
    server.listen(socketPath, () => {
      near = connect(socketPath);
    });
  });
});

afterEach(() => {
  near.destroy();
  far.destroy();
  server.close();
  rmSync(folder, { recursive: true });
});

/** In which phase of the event loop a verdict is asked for: the poll before it has passed, or is yet to come. */
const phases = {
  "a timer": (act: () => void) => setTimeout(act, 0),
  "an immediate": (act: () => void) => setImmediate(act),
  "an I/O callback": (act: () => void) => {
    far.once("data", act);
    near.write("wake");
  },
};

type Later = (act: () => void) => unknown;

/** From the given phase, data arrives and a verdict is asked for through `later`: has the data been seen by then? */
function dataIsSeen(from: Later, later: Later): Promise<boolean> {
  return new Promise((resolve) => {
    let isSeen = false;
    from(() => {
      near.once("data", () => {
        isSeen = true;
      });
      far.write("progress");
      later(() => resolve(isSeen));
    });
  });
}

describe("after a whole poll phase", () => {
  for (const [name, from] of Object.entries(phases)) {
    test(`data that was waiting has been delivered, when asked for from ${name}`, async () => {
      for (let round = 0; round < 20; round++)
        expect(await dataIsSeen(from, (act) => systemHost.timers.afterPoll(act))).toBe(true);
    });
  }

  test("control: after one immediate, asked for from an I/O callback, it has not", async () => {
    expect(await dataIsSeen(phases["an I/O callback"], (act) => setImmediate(act))).toBe(false);
  });

  test("a cancelled callback never comes, whichever hop it was cancelled in", async () => {
    let firedCount = 0;
    const { afterPoll } = systemHost.timers;
    const cancelAtOnce = afterPoll(() => firedCount++);
    cancelAtOnce();
    const cancelBetween = afterPoll(() => firedCount++);
    await new Promise<void>((resolve) =>
      setImmediate(() => {
        cancelBetween();
        resolve();
      }),
    );
    await new Promise<void>((resolve) => void afterPoll(resolve));
    await new Promise<void>((resolve) => void afterPoll(resolve));
    expect(firedCount).toBe(0);
  });
});

describe("soon", () => {
  test("comes behind what is due already, and ahead of every timer that is not", async () => {
    const order: string[] = [];
    await new Promise<void>((resolve) => {
      systemHost.timers.soon(() => order.push("soon"));
      systemHost.timers.soon(() => order.push("cancelled"))();
      queueMicrotask(() => order.push("promise"));
      systemHost.timers.after(5, () => resolve(void order.push("timer")));
    });
    expect(order).toEqual(["promise", "soon", "timer"]);
  });
});
