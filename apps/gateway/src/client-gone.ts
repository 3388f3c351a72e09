import type { FastifyReply } from "fastify";

/**
 * Tells `act`, once, that the client has gone before its answer was whole; at once where it had gone already: it may
 * leave while its request waits for the store. One that has closed its own side counts as gone: nothing tells the two apart.
 */
export function whenClientGone({ raw }: FastifyReply, act: () => void): void {
  const { socket } = raw;
  let isTold = false;
  const tell = (): void => {
    socket?.off("end", tell);
    if (isTold || raw.writableFinished) return;
    isTold = true;
    act();
  };
  if (raw.destroyed || socket?.readableEnded) return tell();
  raw.once("close", tell);
  socket?.once("end", tell);
}
