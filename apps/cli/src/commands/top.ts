import { systemHost } from "@turnkeeper/kernel";
import { readRunningTurns } from "@turnkeeper/agent-core";
import type { RunningTurnState } from "@turnkeeper/agent-core";
import { runningTurnJson, secondsText } from "@turnkeeper/gateway/json";
import type { StateStore } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { printable, styleOf } from "../display/style.ts";
import { table } from "../display/transcript-text.ts";
import { exitCode } from "../exit-code.ts";
import { withObserved } from "../observer.ts";
import { jsonLine } from "../json-line.ts";

const refreshMs = 1000;

function rowsText(rows: readonly RunningTurnState[]): readonly string[] {
  const head = ["SESSION", "TURN", "HOLDER", "STATE", "AGE", "LEASE", "WAITING", "STOP"];
  const cells = rows.map(({ turn, lease, pendingCount, pulse, ageMs }) => [
    turn.sessionId,
    turn.turnId,
    `${turn.holder.pid}@${printable(turn.holder.host)}`,
    pulse,
    secondsText(ageMs),
    lease ? (lease.expiresInMs > 0 ? secondsText(lease.expiresInMs) : "ran out") : "none",
    String(pendingCount),
    turn.stop ? (turn.stop.hard ? "hard" : "soft") : "",
  ]);
  return table([head, ...cells]);
}

/** `turnkeeper top`: one line for each turn that runs, on a terminal until Ctrl-C. */
export async function top(io: CommandIo, flags: CommonFlags): Promise<number> {
  return withObserved(io, flags, async ({ store, presence }) => {
    if (!flags.json && io.stdout.canRedraw) return refresh(io, store, presence);
    const rows = await readRunningTurns({ store, presence });
    if (flags.json) for (const row of rows) io.stdout.line(jsonLine(runningTurnJson(row)));
    else if (rows.length === 0) io.stderr.line("No turn is running.");
    else for (const line of rowsText(rows)) io.stdout.line(line);
    return exitCode.ok;
  });
}

async function refresh(io: CommandIo, store: StateStore, presence: ProcessPresence): Promise<number> {
  const style = styleOf(io.stdout.hasColour);
  let isOver = false;
  let wake = (): void => {};
  const end = (): void => {
    isOver = true;
    wake();
  };
  const undo = [
    io.onSignal("SIGINT", end),
    io.onSignal("SIGTERM", end),
    io.onSignal("SIGHUP", end),
    io.stdout.onGone(end),
  ];
  // The alternate screen: what stood on the terminal before is there again afterwards.
  io.stdout.write("\u001b[?1049h\u001b[?25l");
  try {
    while (!isOver) {
      const rows = await readRunningTurns({ store, presence });
      const lines = rows.length === 0 ? ["No turn is running."] : rowsText(rows);
      const shown = lines.slice(0, io.stdout.rows - 2).map((line) => line.slice(0, io.stdout.columns - 1));
      io.stdout.write(`\u001b[H\u001b[J${style.dim("turnkeeper top · Ctrl-C leaves")}\r\n${shown.join("\r\n")}`);
      await new Promise<void>((resolve) => {
        const cancel = systemHost.timers.after(refreshMs, resolve);
        wake = () => {
          cancel();
          resolve();
        };
        if (isOver) wake();
      });
    }
  } finally {
    io.stdout.write("\u001b[?25h\u001b[?1049l");
    for (const one of undo) one();
  }
  return exitCode.ok;
}
