import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { openGateway, until } from "./inside/open-gateway.ts";

/** Sends a request and closes its own side, as `nc -N` does; answers the socket, which still reads. */
async function ask(url: string, path: string, body: object | undefined, accept = "application/json"): Promise<Socket> {
  const { port, hostname } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  await once(socket, "connect");
  const sent = body === undefined ? "" : JSON.stringify(body);
  const length = body === undefined ? "" : `Content-Type: application/json\r\nContent-Length: ${sent.length}\r\n`;
  socket.end(
    `${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: ${accept}\r\n${length}\r\n${sent}`,
  );
  return socket;
}

async function allOf(socket: Socket): Promise<string> {
  let answer = "";
  socket.setEncoding("utf8");
  socket.on("data", (piece: string) => (answer += piece));
  await once(socket, "end");
  return answer;
}

describe("a client that has closed its side of the connection and still reads", () => {
  it.each(["application/json", "text/event-stream"])("is told the end of a slow turn, as %s", async (accept) => {
    let answer = (): void => {};
    const waits = new Promise<void>((resolve) => (answer = resolve));
    const { url, store } = await openGateway([
      async () => {
        await waits;
        return { text: "at last" };
      },
    ]);
    const socket = await ask(url, "/v1/sessions/s/turns", { input: "Hi" }, accept);
    const told = allOf(socket);
    await until(async () => (await store.turns.running("s")).length > 0);
    // The turn is slower than the end of what the client sends: others are answered meanwhile.
    for (let count = 0; count < 5; count++) expect((await fetch(`${url}/healthz`)).status).toBe(200);
    answer();
    expect(await told).toMatch(/^HTTP\/1\.1 200 [^]*"outcome":"answered","text":"at last"|"text":"at last"/);
    socket.destroy();
  });

  it("keeps its event stream, and one who has gone altogether does not", async () => {
    const { url, store } = await openGateway([{ silentAfter: "half" }], { limits: { streamCount: 3 } });
    const running = await ask(url, "/v1/sessions/s/turns", { input: "Hi" }, "text/event-stream");
    await until(async () => (await store.turns.running("s")).length > 0);
    const reading = await ask(url, "/v1/sessions/s/events", undefined);
    let said = "";
    reading.setEncoding("utf8").on("data", (piece: string) => (said += piece));
    await until(() => Promise.resolve(/half/.test(said)));
    const openCount = async (): Promise<string | undefined> =>
      /turnkeeper_event_streams_open (\d+)/.exec(await (await fetch(`${url}/metrics`)).text())?.[1];
    // Sent to find out whether it has gone: with two of them its machine would have refused the second.
    await until(() => Promise.resolve(said.split(":\n\n").length >= 3));
    for (let count = 0; count < 5; count++) expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect(await openCount()).toBe("2");
    // One that has read all it was sent, and goes: it closes its side like the other.
    const leaving = connect({ port: Number(new URL(url).port), host: new URL(url).hostname });
    leaving.write("GET /v1/sessions/s/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let saidToIt = "";
    leaving.setEncoding("utf8").on("data", (piece: string) => (saidToIt += piece));
    await until(() => Promise.resolve(/half/.test(saidToIt)));
    expect(await openCount()).toBe("3");
    leaving.destroy();
    await until(async () => (await openCount()) === "2");
    await store.turns.requestStop("s", { hard: true, reason: "user-stop", by: "test" });
    expect(await allOf(running)).toContain('"outcome":"interrupted"');
    running.destroy();
    reading.destroy();
  });
});
