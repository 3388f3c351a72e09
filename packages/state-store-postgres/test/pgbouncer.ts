import { spawn } from "node:child_process";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";

/** The program, where this machine has it. */
export function findPgbouncer(): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"];
  return folders.map((folder) => join(folder, "pgbouncer")).find((file) => existsSync(file));
}

export interface Pgbouncer {
  readonly port: number;
  close(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const tell = (isUp: boolean): void => {
      socket.destroy();
      resolve(isUp);
    };
    socket.once("connect", () => tell(true));
    socket.once("error", () => tell(false));
  });
}

/** A pooler in transaction mode before the server, with so many connections to it. */
export async function startPgbouncer(folder: string, serverUrl: string, poolSize: number): Promise<Pgbouncer> {
  const program = findPgbouncer();
  if (program === undefined) throw new Error("There is no pgbouncer.");
  const { port: serverPort } = new URL(serverUrl);
  const port = await freePort();
  const file = join(folder, "pgbouncer.ini");
  const settings = [
    "[databases]",
    `* = host=127.0.0.1 port=${serverPort} user=postgres`,
    "[pgbouncer]",
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    "auth_type = any\npool_mode = transaction",
    `default_pool_size = ${poolSize}\nmax_client_conn = 200\nignore_startup_parameters = extra_float_digits`,
  ];
  writeFileSync(file, `${settings.join("\n")}\n`);
  chmodSync(folder, 0o755);
  // It refuses to run as root, and drops to whom it is told.
  const user = process.getuid?.() === 0 ? ["-u", "postgres"] : [];
  const child = spawn(program, ["-q", ...user, file], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => void (said = `${said}${chunk.toString()}`.slice(-2_000)));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  while (!(await answers(port)))
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`pgbouncer did not start: ${said}`);
  return {
    port,
    close: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
