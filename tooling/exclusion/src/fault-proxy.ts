import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

/** A way to a server that can be cut, slowed down, or made to swallow what the server answers. */
export interface FaultProxy {
  readonly port: number;
  /** Cuts every connection. */
  cut(): void;
  /** From now on the connections there are carry questions and no answers, and no end. New ones are whole. */
  halfClose(): void;
  /** How long each piece is held back from now on, in either direction. */
  delayMs: number;
  close(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  readonly upstream: Socket;
  isMute: boolean;
}

/** Passes on in order, each piece so late as was asked for when it came. */
function pass(from: Socket, to: Socket, delayMs: () => number, isOpen: () => boolean): void {
  let last = Promise.resolve();
  from.on("data", (bytes) => {
    const lateMs = delayMs();
    last = last.then(async () => {
      if (lateMs > 0) await new Promise((resolve) => setTimeout(resolve, lateMs));
      if (isOpen() && !to.destroyed) to.write(bytes);
    });
  });
}

export async function startFaultProxy(serverPort: number): Promise<FaultProxy> {
  const links = new Set<Link>();
  let delayMs = 0;
  const server = createServer((client) => {
    const upstream = connect(serverPort, "127.0.0.1");
    const link: Link = { client, upstream, isMute: false };
    links.add(link);
    const end = (): void => {
      client.destroy();
      upstream.destroy();
      links.delete(link);
    };
    for (const socket of [client, upstream]) {
      socket.on("error", end);
      socket.on("close", end);
    }
    pass(
      client,
      upstream,
      () => delayMs,
      () => true,
    );
    pass(
      upstream,
      client,
      () => delayMs,
      () => !link.isMute,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = (): void => {
    for (const { client, upstream } of links) {
      client.destroy();
      upstream.destroy();
    }
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    halfClose: () => {
      for (const link of links) link.isMute = true;
    },
    get delayMs() {
      return delayMs;
    },
    set delayMs(ms) {
      delayMs = ms;
    },
    close: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
