import { once } from "node:events";
import { rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { ContenderSettings, Contention } from "./contention.ts";
import { openRaw } from "./raw-database.ts";

/** One durable commit: what the end of a turn, and the beginning of the next, cannot do without. */
function openCommit(path: string): { readonly commit: () => void; readonly close: () => void } {
  const database = openRaw(path, "FULL");
  database.exec("CREATE TABLE IF NOT EXISTS turn (turn_id INTEGER PRIMARY KEY, text TEXT NOT NULL)");
  const add = database.prepare("INSERT INTO turn (text) VALUES (?)");
  return { commit: () => void add.run("Good morning"), close: () => void database.close() };
}

/**
 * The floor of a hand-over: one byte on a unix socket to the process that waits, no lock at all; `durable-ping` with one
 * durable commit on either side of it.
 */
export async function openPing({ folder, name, mechanism }: ContenderSettings): Promise<Contention> {
  const other = name === "a" ? "b" : "a";
  const durable = mechanism === "durable-ping" ? openCommit(join(folder, "ping.db")) : undefined;
  let hear = (): void => {};
  const server = createServer((socket) => socket.on("data", () => hear()).on("error", () => {}));
  server.listen(join(folder, `${name}.sock`));
  await once(server, "listening");
  let line: Socket | undefined;
  return {
    acquire: async (isFree) => {
      if (!isFree) await new Promise<void>((resolve) => void (hear = resolve));
      durable?.commit();
    },
    release: async () => {
      durable?.commit();
      line ??= connect(join(folder, `${other}.sock`)).on("error", () => {});
      line.write("!");
    },
    close: async () => {
      line?.destroy();
      server.close();
      durable?.close();
    },
  };
}

/** The floor of a death: the kernel ends the connection to a process that is no more. */
export async function openSocketEnd({ folder }: ContenderSettings): Promise<Contention> {
  const path = join(folder, "holder.sock");
  const server = createServer((socket) => socket.on("error", () => {}));
  return {
    acquire: async (isFree) => {
      if (isFree) {
        rmSync(path, { force: true });
        server.listen(path);
        await once(server, "listening");
        return;
      }
      const line = connect(path).on("error", () => {});
      await once(line, "close");
    },
    release: async () => {},
    close: async () => void server.close(),
  };
}
