/** What a turn that did not end itself left running ends before the next turn has an effect of its own (rule 7.14). */
import { readFileSync } from "node:fs";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeHome, startCli } from "./outside/built-cli.ts";
import type { RunningCli } from "./outside/built-cli.ts";
import { compatibleConfig, openAiCall, openAiText, serveModel } from "./outside/model-server.ts";
import type { Answer } from "./outside/model-server.ts";
import { isAlive } from "./outside/life.ts";

/** Settles the expired turn of session `s` as a reaper does that is killed before it has ended any process. */
async function settleAlone(home: string): Promise<void> {
  const store = await openSqliteStore(path.join(home, "state.db"), { host: systemHost });
  try {
    for (;;) {
      const [view] = await store.turns.running("s");
      if (!view?.lease) throw new Error("Nothing runs on session s.");
      const { holder, fencingToken, standing } = view.lease;
      if (standing !== "expired") {
        await new Promise((resolve) => setTimeout(resolve, 50));
        continue;
      }
      const settled = await store.turns.settleForeign({ sessionId: "s", holderId: holder.holderId, fencingToken });
      expect(settled.kind).toBe("settled");
      return;
    }
  } finally {
    await store.close();
  }
}

/** Stops it where it has no lock of the store: until it goes on, nobody else could write. */
async function standStill({ child, pid }: RunningCli, home: string): Promise<void> {
  const database = new Database(path.join(home, "state.db"), { timeout: 0 });
  const isStopped = (): boolean => /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  const isFree = (): boolean => {
    try {
      database.exec("BEGIN IMMEDIATE; ROLLBACK");
      return true;
    } catch {
      return false;
    }
  };
  for (child.kill("SIGSTOP"); ; child.kill("SIGSTOP")) {
    await expect.poll(isStopped, { timeout: 10_000, interval: 1 }).toBe(true);
    if (isFree()) break;
    child.kill("SIGCONT");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  database.close();
}

// The kill by marker reads /proc.
it.runIf(process.platform === "linux")(
  "rule 7.14: a tool of a stopped process, whose turn another process settled, is gone before the next model call",
  async () => {
    let toolPid = 0;
    let wasAlive: boolean | undefined;
    const next: Answer = (response, request) => {
      wasAlive = isAlive(toolPid);
      return openAiText("went on")(response, request);
    };
    const command = "echo $$ > tool.pid; echo ready; exec sleep 600";
    const server = await serveModel(openAiCall("shell", JSON.stringify({ command })), next);
    const home = makeHome(compatibleConfig(server, "agent:\n  turn_lease: { ttl_s: 1.5, renew_s: 0.4 }\n"));
    const first = startCli(["run", "go", "--session", "s", "--yes"], { home });
    await first.sees(/▸ shell/, "stderr");
    await expect
      .poll(() => (toolPid = Number(readFileSync(path.join(home, "tool.pid"), "utf8"))), { timeout: 10_000 })
      .toBeGreaterThan(1);
    await standStill(first, home);
    expect(isAlive(toolPid)).toBe(true);
    await settleAlone(home);
    expect(isAlive(toolPid)).toBe(true);
    expect(await runInside(["run", "next", "--session", "s"], { home })).toMatchObject({
      code: 0,
      stdout: "went on\n",
    });
    expect(wasAlive).toBe(false);
    // It goes on, finds that it lost the session, and ends as interrupted.
    first.child.kill("SIGCONT");
    expect(await first.ended).toMatchObject({ code: 130 });
    expect(await runInside(["sessions", "verify", "s"], { home })).toMatchObject({ code: 0 });
  },
  60_000,
);
