import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { systemHost } from "@turnkeeper/kernel";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { createProgressClock, watchTurn } from "@turnkeeper/turn-liveness";
import { expect, it } from "vitest";

/** Keeps the thread busy in the middle of an I/O callback, as a parser or a synchronous driver does. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

it("LIVE-2: on the real event loop, a token that arrived during a blocked callback saves the turn", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [provider] = await accepted;

  const events: string[] = [];
  const clock = createProgressClock({ host: systemHost });
  const scheduler = createPeriodicScheduler({ host: systemHost }, { slackMs: 0 });
  const watch = watchTurn(
    { clock, scheduler, host: systemHost },
    { timeoutMs: 60, pollMs: 10 },
    {
      name: "blocked",
      commitAbort: async (claim) => claim.consume(),
      onStall: () => void events.push("stalled"),
      onAborted: () => void events.push("aborted"),
    },
  );
  const tokens = 4;
  await new Promise<void>((resolve) => {
    let count = 0;
    client.on("data", () => {
      clock.progress("model", "token");
      // Seen, so that the silence counts from here and not from the next look.
      clock.snapshot();
      if (++count === tokens) return resolve();
      // The next token is in the kernel's buffer before the loop stands still; the timers of the watch fire first then.
      provider.write("token");
      block(90);
    });
    provider.write("token");
  });
  expect(events).toEqual([]);
  await watch.stop();
  await scheduler.close();
  client.destroy();
  provider.destroy();
  server.close();
  await once(server, "close");
});
