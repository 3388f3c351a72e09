import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import path from "node:path";

/** Whether a process takes a connection there; a refusal and whatever else goes wrong mean that none does. */
function isAnswered(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** The liveness sockets in a folder behind which a process lives, in whatever pid namespace. */
export async function liveSockets(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => []);
  const sockets = names.filter((name) => name.endsWith(".sock")).map((name) => path.join(folder, name));
  const answers = await Promise.all(sockets.map(async (socket) => ((await isAnswered(socket)) ? [socket] : [])));
  return answers.flat();
}
