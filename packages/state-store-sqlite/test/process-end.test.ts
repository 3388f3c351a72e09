/** What a process does to its stores when it simply ends; alone in its file, since a sealed store stays for the process's life. */
import { renameSync } from "node:fs";
import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { expect, test, vi } from "vitest";
import { turnOf } from "./scene.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const host = systemHost;

test("STORE-1: a process whose files were replaced ends at once, before its connections are closed in whatever order", async () => {
  const known = new Set(process.listeners("exit"));
  const [path, other] = [join(folder(), "state.db"), join(folder(), "other.db")];
  const store = await openSqliteStore(path, { host });
  const atEnd = process.listeners("exit").filter((listener) => !known.has(listener));
  expect(atEnd).toHaveLength(1);
  await (await openSqliteStore(other, { host })).close();
  await turnOf(store, "a");
  const exit = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
  try {
    for (const listener of atEnd) listener.call(process, 3);
    expect(exit).not.toHaveBeenCalled();
    renameSync(other, path);
    for (const listener of atEnd) listener.call(process, 3);
    expect(exit.mock.calls).toEqual([[3]]);
  } finally {
    exit.mockRestore();
  }
});
