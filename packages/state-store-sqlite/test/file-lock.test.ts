import { statSync } from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { fileLock } from "@turnkeeper/state-store-sqlite";
import { describe, expect, it } from "vitest";
import { startProcess } from "./store-process.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const pathOf = (): string => join(folder(), "tokens.lock");

describe("a file lock", () => {
  it("has one holder at a time, in one process too, and each gets its turn", async () => {
    const path = pathOf();
    let holderCount = 0;
    let mostHolders = 0;
    const work = async (): Promise<void> => {
      mostHolders = Math.max(mostHolders, ++holderCount);
      await new Promise((resolve) => void systemHost.timers.after(2, () => resolve(undefined)));
      holderCount--;
    };
    const locks = Array.from({ length: 6 }, () => fileLock(path, { host: systemHost }, { pollMs: 1 }));
    const outcomes = await Promise.all(locks.map((lock) => lock.hold(work)));
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array(6).fill("held"));
    expect(mostHolders).toBe(1);
  });

  it("is an empty file of this user's alone", async () => {
    const path = pathOf();
    await fileLock(path, { host: systemHost }).hold(async () => {
      expect(statSync(path)).toMatchObject({ size: 0 });
      expect(statSync(path).mode & 0o777).toBe(0o600);
    });
    expect(statSync(path).size).toBe(0);
  });

  it("answers what the work answers, and is free again when that fails", async () => {
    const lock = fileLock(pathOf(), { host: systemHost });
    await expect(lock.hold(() => Promise.reject(new Error("The work failed.")))).rejects.toThrow("The work failed.");
    expect(await lock.hold(async () => 7)).toEqual({ kind: "held", value: 7 });
  });

  it("that stays held for the whole of the wait is busy, and the work is not begun", async () => {
    const host = virtualHost();
    const path = pathOf();
    let release = (): void => {};
    const held = fileLock(path, { host }).hold(() => new Promise<void>((resolve) => (release = resolve)));
    let hasBegun = false;
    const waiting = fileLock(path, { host }, { waitMs: 1000 }).hold(async () => void (hasBegun = true));
    for (let step = 0; step < 20; step++) await host.advance(100);
    expect(await waiting).toEqual({ kind: "busy" });
    expect(hasBegun).toBe(false);
    release();
    await held;
    expect(host.pendingTimerCount()).toBe(0);
  });

  it("is free as soon as the process that held it is dead", { timeout: 30_000 }, async () => {
    const path = pathOf();
    const holder = startProcess("file-lock-holder", [path]);
    for await (const line of holder.lines) {
      expect(line).toEqual({ held: true });
      break;
    }
    const once = fileLock(path, { host: systemHost }, { waitMs: 0 });
    expect(await once.hold(async () => 1)).toEqual({ kind: "busy" });
    holder.kill();
    await holder.ended;
    expect(await once.hold(async () => 2)).toEqual({ kind: "held", value: 2 });
  });

  it("in a folder that is not there rejects, and holds nothing", async () => {
    const lock = fileLock(join(folder(), "missing", "lock"), { host: systemHost });
    await expect(lock.hold(async () => 1)).rejects.toThrow(/ENOENT/);
  });
});
