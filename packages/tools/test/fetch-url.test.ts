import { getEventListeners } from "node:events";
import type { RequestListener } from "node:http";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { expect, test } from "vitest";
import { createFetchUrlTool } from "../src/index.ts";
import type { FetchUrlInput, FetchUrlOptions } from "../src/index.ts";
import { webServer } from "./web-server.ts";
import { rejection, workbench } from "./workbench.ts";

/** Fetches a path of a server that is allowed. */
async function fetched(
  listener: RequestListener,
  {
    path = "/",
    options = {},
    input = {},
  }: { readonly path?: string; readonly options?: FetchUrlOptions; readonly input?: Partial<FetchUrlInput> } = {},
): Promise<{ readonly answer: Promise<string>; readonly server: Awaited<ReturnType<typeof webServer>> }> {
  const { context } = await workbench();
  const server = await webServer(listener);
  const tool = createFetchUrlTool({ host: systemHost }, { allowHosts: [server.host], ...options });
  return { server, answer: tool.execute({ url: `http://${server.host}${path}`, ...input }, context) };
}

const plain = { "content-type": "text/plain" };

test("text is answered as it stands, under its address and type", async () => {
  const { answer, server } = await fetched((_request, response) => response.writeHead(200, plain).end("grüße\n"));
  expect(await answer).toBe(`[http://${server.host}/, text/plain]\ngrüße\n`);
});

test("nothing of ours goes along but what a page needs", async () => {
  const { answer, server } = await fetched((_request, response) => response.end("x"), { path: "/a?b#c" });
  await answer;
  expect(server.requests[0]?.url).toBe("/a?b");
  expect(Object.keys(server.requests[0]?.headers ?? {}).toSorted()).toEqual([
    "accept",
    "accept-encoding",
    "connection",
    "host",
    "user-agent",
  ]);
});

test("HTML becomes Markdown with its title, unless it is wanted raw", async () => {
  const html = "<title>A page</title><h1>Hello</h1><p>See <a href='/b'>this</a>.<script>alert(1)</script>";
  const listener: RequestListener = (_request, response) =>
    response.writeHead(200, { "content-type": "text/html" }).end(html);
  const { answer, server } = await fetched(listener);
  expect(await answer).toBe(
    `[http://${server.host}/, text/html, "A page"]\n# Hello\n\nSee [this](http://${server.host}/b).`,
  );
  const raw = await fetched(listener, { input: { raw: true } });
  expect(await raw.answer).toContain("<script>alert(1)</script>");
});

test("the charset is that of the mark, the header or the page", async () => {
  const bodies: readonly (readonly [string, Buffer])[] = [
    ["text/plain; charset=ISO-8859-1", Buffer.from("grüße", "latin1")],
    ["text/plain; charset=latin1", Buffer.from("\uFEFFgrüße")],
    ["text/plain", Buffer.from("\uFEFFgrüße", "utf16le")],
    ["text/html", Buffer.from('<meta charset="windows-1252">grüße', "latin1")],
    ["text/plain; charset=nonsense", Buffer.from("grüße")],
  ];
  for (const [contentType, body] of bodies) {
    const { answer } = await fetched((_request, response) =>
      response.writeHead(200, { "content-type": contentType }).end(body),
    );
    expect(await answer).toMatch(/\ngrüße$/);
  }
});

test("packed content is unpacked", async () => {
  const packings: readonly (readonly [string, Buffer])[] = [
    ["gzip", gzipSync("packed")],
    ["deflate", deflateSync("packed")],
    ["br", brotliCompressSync("packed")],
  ];
  for (const [packing, body] of packings) {
    const { answer } = await fetched((_request, response) =>
      response.writeHead(200, { ...plain, "content-encoding": packing }).end(body),
    );
    expect(await answer).toMatch(/\npacked$/);
  }
});

test("a small body that unpacks to a huge one is cut, in little memory", async () => {
  const bomb = gzipSync(Buffer.alloc(200_000_000, "a"));
  const before = process.memoryUsage().rss;
  const { answer } = await fetched(
    (_request, response) => response.writeHead(200, { ...plain, "content-encoding": "gzip" }).end(bomb),
    { options: { bodyBytesMax: 100_000, charactersMax: 1_000_000 } },
  );
  const text = await answer;
  expect(text).toMatch(/\[the page is larger than what is read of one; the rest cannot be shown\]$/);
  expect(text.length).toBeLessThan(101_000);
  expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
});

test("an endless body is cut, packed or not", async () => {
  const chunk = Buffer.alloc(65_536, "x\n");
  const { answer, server } = await fetched(
    (_request, response) => {
      response.writeHead(200, plain);
      const more = (): void => {
        while (response.write(chunk));
      };
      response.on("drain", more);
      more();
    },
    { options: { bodyBytesMax: 200_000 }, input: { offset: 190_000 } },
  );
  expect(await answer).toContain("the page is larger");
  await expect.poll(() => server.requests[0]?.socket.destroyed).toBe(true);
});

test("damaged and unknown packings are refused", async () => {
  const damaged = await fetched((_request, response) =>
    response.writeHead(200, { ...plain, "content-encoding": "gzip" }).end("no gzip"),
  );
  expect((await rejection(damaged.answer)).message).toContain("its packed content is damaged");
  const unknown = await fetched((_request, response) =>
    response.writeHead(200, { ...plain, "content-encoding": "zstd" }).end("x"),
  );
  expect((await rejection(unknown.answer)).message).toContain("was not asked for");
});

test("what is no text is refused before its body is read", async () => {
  const { answer, server } = await fetched((_request, response) => {
    response.writeHead(200, { "content-type": "application/pdf" });
    response.write("%PDF");
  });
  expect((await rejection(answer)).message).toContain('is "application/pdf", and only text can be shown');
  await expect.poll(() => server.requests[0]?.socket.destroyed).toBe(true);
});

test("a redirect on the same host is followed, in a circle only so far", async () => {
  const { answer, server } = await fetched(
    (request, response) => {
      const step = Number(request.url?.slice(1));
      if (step === 5) return response.writeHead(200, plain).end("there");
      response.writeHead(302, { location: `/${step + 1}` }).end();
    },
    { path: "/0" },
  );
  expect(await answer).toBe(`[http://${server.host}/5, text/plain]\nthere`);
  const circle = await fetched((_request, response) => response.writeHead(307, { location: "/" }).end());
  expect(await rejection(circle.answer)).toMatchObject({ code: "FETCH_FAILED" });
  expect(circle.server.requests).toHaveLength(6);
});

test("a redirect to another host is answered, not followed", async () => {
  const inside = await webServer((_request, response) => response.end("a secret"));
  const targets = [`http://${inside.host}/x`, "http://169.254.169.254/latest", "https://127.0.0.1:1/", "//other.test/"];
  for (const target of targets) {
    const { answer } = await fetched((_request, response) => response.writeHead(301, { location: target }).end());
    expect(await answer).toContain("redirects to another host, which was not asked:");
  }
  expect(inside.socketCount()).toBe(0);
  const broken = await fetched((_request, response) => response.writeHead(301, { location: "http://[" }).end());
  expect(await rejection(broken.answer)).toMatchObject({ code: "FETCH_FAILED" });
});

test("a failure says its status and the beginning of what the server said", async () => {
  const { answer } = await fetched((_request, response) =>
    response.writeHead(404, plain).end(`no such page ${"x".repeat(5_000)}`),
  );
  const error = await rejection(answer);
  expect(error).toMatchObject({ code: "FETCH_FAILED" });
  expect(error.message).toMatch(/answered 404\.\nno such page x+$/);
  expect(error.message.length).toBeLessThan(600);
});

test.each([
  ["never answers", () => undefined],
  ["stops in its headers", (_request, response) => void response.socket?.write("HTTP/1.1 200 OK\r\nA: b\r\n")],
  ["stops in its body", (_request, response) => void response.writeHead(200, plain).write("begun")],
  [
    "drips",
    (_request, response) => {
      response.writeHead(200, plain);
      const drip = (): void => {
        if (response.destroyed) return;
        response.write(".");
        systemHost.timers.after(20, drip);
      };
      drip();
    },
  ],
] as readonly (readonly [string, RequestListener])[])(
  "a server that %s is given up when the time is over",
  async (_name, listener) => {
    const { context } = await workbench();
    const server = await webServer(listener);
    const host = virtualHost();
    const tool = createFetchUrlTool({ host }, { allowHosts: [server.host] });
    const call = rejection(tool.execute({ url: `http://${server.host}/` }, context));
    await expect.poll(() => server.requests.length).toBe(1);
    await host.advance(30_000);
    expect((await call).message).toContain("did not answer in full within 30 s.");
    await expect.poll(() => server.requests[0]?.socket.destroyed).toBe(true);
    expect(host.pendingTimerCount()).toBe(0);
  },
);

test("a stop ends the fetch at once, and leaves no listener and no socket", async () => {
  const bench = await workbench();
  const server = await webServer((_request, response) => void response.writeHead(200, plain).write("begun"));
  const tool = createFetchUrlTool({ host: systemHost }, { allowHosts: [server.host] });
  const call = rejection(tool.execute({ url: `http://${server.host}/` }, bench.context));
  await expect.poll(() => server.requests.length).toBe(1);
  bench.stop();
  expect(await call).toMatchObject({ code: "CALL_INTERRUPTED" });
  await expect.poll(() => server.requests[0]?.socket.destroyed).toBe(true);
  expect(getEventListeners(bench.context.signal, "abort")).toEqual([]);
});

test("broken connections and names that are not known are told in words", async () => {
  const cut = await fetched((_request, response) => {
    response.writeHead(200, { ...plain, "content-length": "100" });
    response.write("begun");
    response.socket?.resetAndDestroy();
  });
  expect((await rejection(cut.answer)).message).toContain("the server broke the connection off");
  const { context } = await workbench();
  const tool = createFetchUrlTool({
    host: systemHost,
    resolveName: () => Promise.reject(Object.assign(new Error("no"), { code: "ENOTFOUND" })),
  });
  expect((await rejection(tool.execute({ url: "http://unknown.test/" }, context))).message).toContain(
    "its name is not known",
  );
});

test("a page that takes for ever to reduce is given up, and the event loop stays free meanwhile", async () => {
  const { context, moved } = await workbench();
  // Each tag looks through all that are open: hours for a page of this size.
  const html = "<div>".repeat(400_000);
  const server = await webServer((_request, response) =>
    response.writeHead(200, { "content-type": "text/html" }).end(html),
  );
  const host = virtualHost();
  const tool = createFetchUrlTool({ host }, { allowHosts: [server.host] });
  const call = rejection(tool.execute({ url: `http://${server.host}/` }, context));
  await moved;
  await host.advance(10_000);
  const error = await call;
  expect(error).toMatchObject({ code: "FETCH_FAILED" });
  expect(error.message).toContain("takes too long to reduce to text; try raw");
  expect(CodedError.is(error) && error.context["receipt"]).toEqual({ steps: [{ step: "terminate", ended: true }] });
  expect(host.pendingTimerCount()).toBe(0);
});

test("a long text is answered in parts", async () => {
  const listener: RequestListener = (_request, response) => response.writeHead(200, plain).end("0123456789".repeat(60));
  const options = { charactersMax: 256 };
  const first = await fetched(listener, { options });
  expect(await first.answer).toMatch(/\n\[the text goes on, continue with offset 256\]$/);
  const last = await fetched(listener, { options, input: { offset: 512 } });
  expect(await last.answer).toMatch(/text\/plain\]\n2345.*9$/);
  const behind = await fetched(listener, { options, input: { offset: 600 } });
  expect(await behind.answer).toMatch(/\n\[the text ends at character 600\]$/);
});
