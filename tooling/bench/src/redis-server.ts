import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** A private Redis on a unix socket, in memory alone: the fastest that Redis gives. */
export interface RedisServer {
  readonly socketPath: string;
  close(): Promise<void>;
}

export function hasRedisServer(): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, "redis-server")));
}

export async function startRedisServer(folder: string): Promise<RedisServer> {
  mkdirSync(folder, { recursive: true });
  const socketPath = join(folder, "redis.sock");
  const settings = ["--port", "0", "--unixsocket", socketPath, "--save", "", "--appendonly", "no", "--dir", folder];
  const child = spawn("redis-server", settings, { stdio: "ignore" });
  const exit = once(child, "exit");
  const killIt = (): void => void child.kill("SIGKILL");
  process.once("exit", killIt);
  for (let look = 0; !existsSync(socketPath); look++) {
    if (look > 400 || child.exitCode !== null) throw new Error("redis-server did not open its socket.");
    await pause(25);
  }
  return {
    socketPath,
    close: async () => {
      process.off("exit", killIt);
      child.kill("SIGTERM");
      await exit;
    },
  };
}
