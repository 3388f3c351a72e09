import type { FastifyReply } from "fastify";

/**
 * Tells `act`, once, that the client has gone before its answer was whole; at once where it had gone already: it may
 * leave while its request waits for the store.
 */
export function whenClientGone({ raw }: FastifyReply, act: () => void): void {
  const tell = (): void => {
    if (!raw.writableFinished) act();
  };
  if (raw.destroyed) tell();
  else raw.once("close", tell);
}
