import { createServer } from "node:http";
import type { IncomingMessage, RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface WebServer {
  readonly port: number;
  readonly address: string;
  /** `ADDRESS:PORT`. */
  readonly host: string;
  readonly requests: readonly IncomingMessage[];
  /** Sockets that were opened, with a request or without. */
  readonly socketCount: () => number;
}

/** A server on a loopback address, closed after the test with all its sockets. */
export async function webServer(
  listener: RequestListener,
  { address = "127.0.0.1", port = 0 }: { readonly address?: string; readonly port?: number } = {},
): Promise<WebServer> {
  const requests: IncomingMessage[] = [];
  let socketCount = 0;
  const server = createServer((request, response) => {
    requests.push(request);
    listener(request, response);
  });
  server.on("connection", () => (socketCount += 1));
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const own = (server.address() as AddressInfo).port;
  return { port: own, address, host: `${address}:${own}`, requests, socketCount: () => socketCount };
}
