import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

/**
 * What becomes of the next statement whose text has the marker in it.
 * `before`: the connection is cut before the server has read it. `after`: the server runs it, and its answer is cut.
 * `half`: the server runs it, and the answer never comes, nor an end of the connection.
 */
export type Cut = "before" | "after" | "half";

export interface CuttingProxy {
  readonly port: number;
  /** Cuts the next statement with `marker` in it, once. */
  cutNext(marker: string, cut: Cut): void;
  /** As `cutNext` after it was run, and from then on refuses everybody: resolves when that is so. */
  cutOffAfter(marker: string): Promise<void>;
  /** Whether the cut that was asked for last has been made. */
  readonly isCut: boolean;
  /** Cuts every connection, and refuses new ones while `refuses`. */
  cutAll(refuses: boolean): void;
  /** Leads to another server of this machine from now on; what led to the last is cut. */
  leadTo(serverPort: number): void;
  close(): Promise<void>;
}

/** A way to a server of this machine that can be cut at a statement. */
export async function startCuttingProxy(serverPort: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let asked: { readonly marker: string; readonly cut: Cut; readonly onMade?: () => void } | undefined;
  let isRefusing = false;
  let port = serverPort;

  const server = createServer((client) => {
    if (isRefusing) return void client.destroy();
    const upstream = connect(port, "127.0.0.1");
    let isMute = false;
    let isCutting = false;
    let onCut: (() => void) | undefined;
    const end = (): void => {
      client.destroy();
      upstream.destroy();
      sockets.delete(client);
      sockets.delete(upstream);
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end);
      socket.on("close", end);
    }
    client.on("data", (bytes) => {
      const cut = asked && bytes.includes(asked.marker) ? asked.cut : undefined;
      if (cut !== undefined) {
        onCut = asked?.onMade;
        asked = undefined;
      }
      if (cut === "before") return end();
      isCutting ||= cut === "after";
      isMute ||= cut === "half";
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (isCutting) {
        end();
        onCut?.();
      } else if (!isMute) client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    cutNext: (marker, cut) => void (asked = { marker, cut }),
    cutOffAfter: (marker) =>
      new Promise((resolve) => {
        const onMade = (): void => {
          isRefusing = true;
          resolve();
        };
        asked = { marker, cut: "after", onMade };
      }),
    get isCut() {
      return asked === undefined;
    },
    cutAll: (refuses) => {
      isRefusing = refuses;
      for (const socket of sockets) socket.destroy();
    },
    leadTo: (nextPort) => {
      port = nextPort;
      for (const socket of sockets) socket.destroy();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
