import { once } from "node:events";
import { connect } from "node:net";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openGateway, post, rawRequest, until } from "./inside/open-gateway.ts";

const token = "correct-horse-battery";
const bearer = { authorization: `Bearer ${token}` };

describe("a stranger without the token", () => {
  it.each([
    ["none", {}],
    ["a wrong one", { authorization: "Bearer correct-horse-batterz" }],
    ["a part of it", { authorization: "Bearer correct" }],
    ["another scheme", { authorization: `Basic ${token}` }],
    ["an empty one", { authorization: "Bearer " }],
  ])("is served nothing but probes: %s", async (_what, headers) => {
    const { url } = await openGateway([], { token });
    for (const path of ["/v1/sessions", "/v1/turns", "/v1/sessions/s/events", "/metrics", "/nothing"]) {
      const response = await fetch(`${url}${path}`, { headers });
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
    }
    expect((await post(`${url}/v1/sessions/s/turns`, { input: "Hi" }, headers)).status).toBe(401);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it("cannot put it into the address", async () => {
    const { url } = await openGateway([], { token });
    expect((await fetch(`${url}/v1/sessions?token=${token}`)).status).toBe(401);
    expect((await fetch(`${url}/v1/sessions?access_token=${token}`)).status).toBe(401);
  });

  it("is refused where there is none to have: a public address needs one, and a short one is none", async () => {
    for (const hostname of ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.example.org"])
      await expect(openGateway([], { hostname })).rejects.toMatchObject({ code: "GATEWAY_UNPROTECTED" });
    for (const weak of ["", "short", "with a space in it", "tab\tinside-it"])
      await expect(openGateway([], { token: weak })).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });
});

describe("a page in somebody's browser", () => {
  it.each(["https://evil.example", "null", "file://", "http://localhost.evil.example", "http://127.0.0.1:1", "x"])(
    "of a foreign origin is refused, also where no token is needed: %s",
    async (origin) => {
      const { url, store } = await openGateway([]);
      const response = await post(`${url}/v1/sessions/s/turns`, { input: "Hi" }, { origin });
      expect(response.status).toBe(403);
      expect(response.headers.get("access-control-allow-origin")).toBeNull();
      expect((await fetch(`${url}/v1/sessions`, { headers: { origin } })).status).toBe(403);
      expect(await store.sessions.list()).toEqual({ sessions: [] });
    },
  );

  it("of the gateway's own origin, or of one that is allowed, is served; its browser is told so", async () => {
    const { url } = await openGateway([], { allowedOrigins: ["https://app.example"] });
    expect((await fetch(`${url}/v1/sessions`, { headers: { origin: url } })).status).toBe(200);
    const origin = "https://app.example";
    const allowed = await fetch(`${url}/v1/sessions`, { headers: { origin } });
    expect([allowed.status, allowed.headers.get("access-control-allow-origin")]).toEqual([200, origin]);
    const preflight = {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization",
    };
    const asked = await fetch(`${url}/v1/sessions/s/turns`, { method: "OPTIONS", headers: preflight });
    expect([asked.status, asked.headers.get("access-control-allow-headers")]).toEqual([204, "authorization"]);
    const foreign = { ...preflight, origin: "https://evil.example" };
    expect((await fetch(`${url}/v1/sessions/s/turns`, { method: "OPTIONS", headers: foreign })).status).toBe(403);
  });

  it("under a name that was bound to this address is refused by its Host", async () => {
    const { url } = await openGateway([]);
    const { port } = new URL(url);
    for (const host of [
      "evil.example",
      `evil.example:${port}`,
      "localhost.evil.example",
      "127.0.0.1.evil.example",
      "",
      "[::1",
    ])
      expect(await rawRequest(url, `GET /v1/sessions HTTP/1.1\r\nHost: ${host}`)).toMatch(/^HTTP\/1\.1 403/);
    expect(await rawRequest(url, "GET /v1/sessions HTTP/1.0")).toMatch(/^HTTP\/1\.1 403/);
    for (const host of ["localhost", `127.0.0.1:${port}`, "[::1]:80", "LOCALHOST"])
      expect(await rawRequest(url, `GET /v1/sessions HTTP/1.1\r\nHost: ${host}`)).toMatch(/^HTTP\/1\.1 200/);
  });

  it("behind a reverse proxy is known by the names that are allowed, and by no others", async () => {
    const { url } = await openGateway([], { allowedHosts: ["agents.example"] });
    expect(await rawRequest(url, "GET /v1/sessions HTTP/1.1\r\nHost: agents.example")).toMatch(/^HTTP\/1\.1 200/);
    expect(await rawRequest(url, "GET /v1/sessions HTTP/1.1\r\nHost: other.example")).toMatch(/^HTTP\/1\.1 403/);
  });

  it("cannot send what its browser would send without asking: a form or plain text", async () => {
    const { url, store } = await openGateway([]);
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
      const response = await fetch(`${url}/v1/sessions/s/turns`, {
        method: "POST",
        headers: { "content-type": type },
        body: '{"input":"Hi"}',
      });
      expect(response.status).toBe(415);
    }
    expect(await store.sessions.list()).toEqual({ sessions: [] });
  });

  it("finds headers on every answer that keep it from framing, sniffing and keeping", async () => {
    const { url } = await openGateway([{ text: "Hello." }]);
    const stream = await post(`${url}/v1/sessions/s/turns`, { input: "Hi" }, { accept: "text/event-stream" });
    for (const response of [await fetch(`${url}/v1/sessions`), await fetch(`${url}/nothing`), stream]) {
      expect(Object.fromEntries(response.headers)).toMatchObject({
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "x-request-id": expect.stringMatching(/^[\w.:-]{1,64}$/),
      });
      await response.body?.cancel();
    }
  });
});

describe("a request that is made to break something", () => {
  it("that is slow is cut off, its head as its body", async () => {
    const { url } = await openGateway([]);
    const { port, hostname } = new URL(url);
    const began = performance.now();
    const answers = ["GET / HTTP/1.1\r\nHost: loc", "POST /v1/sessions/s/turns HTTP/1.1\r\nHost: localhost\r\n"].map(
      async (text) => {
        const socket = connect(Number(port), hostname);
        let answer = "";
        socket.setEncoding("utf8").on("data", (chunk: string) => (answer += chunk));
        socket.write(text);
        await once(socket, "close");
        return answer;
      },
    );
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1\.1 408 Too slow/);
    expect(performance.now() - began).toBeLessThan(20_000);
  });

  it("that is no HTTP, or has too long a head, is told so as a problem", async () => {
    const { url } = await openGateway([]);
    expect(await rawRequest(url, "NONSENSE\r\n")).toMatch(/^HTTP\/1\.1 400 [^]*"code":"request_invalid"/);
    const long = await rawRequest(url, `GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(20_000)}`);
    expect(long).toMatch(/^HTTP\/1\.1 431 [^]*"code":"headers_too_large"/);
  });

  it("is told what does not fit, whatever is in it, and never that the gateway failed", async () => {
    const { url } = await openGateway([], { token });
    const answered = new Set<number>();
    const json = fc.oneof(
      fc.json({ maxDepth: 6 }),
      fc.string(),
      fc.constant("[".repeat(100_000)),
      fc.constant(`${'{"input":'.repeat(2000)}1${"}".repeat(2000)}`),
      fc.constant('{"__proto__":{"x":1},"input":"a"}'),
      fc.constant('{"constructor":{"prototype":1}}'),
      fc
        .record({ input: fc.anything(), inputId: fc.string(), onBusy: fc.string() })
        .map((body) => JSON.stringify(body) ?? ""),
      fc.string({ unit: "binary" }).map((inputId) => JSON.stringify({ input: " ", inputId })),
    );
    const path = fc.oneof(
      fc.string({ unit: "binary" }).map((id) => `/v1/sessions/${encodeURIComponent(id.toWellFormed())}/turns`),
      fc.constantFrom("/v1/sessions/%E0%A4%A/turns", "/v1/sessions/%00/turns", `/v1/sessions/${"x".repeat(600)}/turns`),
      fc.constantFrom("stop", "turns").map((what) => `/v1/sessions/s/${what}`),
      fc.webPath().map((tail) => `/v1/sessions${tail}`),
    );
    const query = fc.webQueryParameters();
    await fc.assert(
      fc.asyncProperty(json, path, query, fc.boolean(), async (body, where, search, isRead) => {
        const response = await fetch(`${url}${where}?${search}`, {
          method: isRead ? "GET" : "POST",
          headers: { ...bearer, "content-type": "application/json" },
          ...(isRead ? {} : { body }),
        });
        answered.add(response.status);
        expect(response.status).toBeLessThan(500);
        if (response.status >= 400)
          expect(await response.json()).toMatchObject({ code: expect.stringMatching(/^[a-z_]+$/) });
        else await response.body?.cancel();
      }),
      { numRuns: 200 },
    );
    expect([...answered]).toEqual(expect.arrayContaining([400, 404]));
  });

  it("is refused by its Host, its Origin and its missing token before its path is looked at", async () => {
    const lines: string[] = [];
    const { url } = await openGateway([], { token, log: { level: "info", write: (line) => lines.push(line) } });
    const paths = [`/v1/sessions/${"x".repeat(9000)}/turns`, "/v1/sessions/%E0%A4%A/turns"];
    for (const path of paths) {
      const asked = (headers: string): Promise<string> => rawRequest(url, `GET ${path} HTTP/1.1\r\n${headers}`);
      const known = `Host: localhost\r\nAuthorization: Bearer ${token}`;
      expect(await asked("Host: evil.example")).toMatch(/^HTTP\/1\.1 403 [^]*"code":"host_foreign"/);
      expect(await asked(`${known}\r\nOrigin: https://evil.example`)).toMatch(/^HTTP\/1\.1 403 /);
      expect(await asked("Host: localhost")).toMatch(/^HTTP\/1\.1 401 /);
      const told = await asked(known);
      expect(told).toMatch(/^HTTP\/1\.1 40[04] [^]*x-content-type-options: nosniff[^]*"requestId":"/);
      expect(told).not.toMatch(/xxxx|%E0/);
    }
    await until(() => Promise.resolve(lines.filter((line) => line.includes('"msg":"request"')).length === 8));
  });

  it("is marked like every other where it never became a request of a route", async () => {
    const { url } = await openGateway([]);
    const heads = [
      "NONSENSE\r\n",
      `GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(20_000)}`,
      "GET /healthz HTTP/1.1",
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: the-impossible",
    ];
    for (const head of heads)
      expect(await rawRequest(url, head)).toMatch(
        /x-content-type-options: nosniff[^]*content-security-policy: default/,
      );
  });

  it("is not unpacked", async () => {
    const { url, store } = await openGateway([]);
    const headers = { "content-encoding": "gzip" };
    const response = await post(`${url}/v1/sessions/s/turns`, { input: "Hi" }, headers);
    expect([response.status, await response.json()]).toEqual([
      415,
      expect.objectContaining({ code: "content_encoding_unsupported" }),
    ]);
    expect(await store.sessions.list()).toEqual({ sessions: [] });
  });

  it("has headers that mean nothing here, and changes nothing by them", async () => {
    const { url } = await openGateway([]);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("accept", "last-event-id", "x-request-id", "if-none-match", "range", "expect", "x-session-id"),
        fc.string({ minLength: 1, maxLength: 300 }).filter((value) => /^[\x21-\x7e][\x20-\x7e]*$/.test(value)),
        async (name, value) => {
          const answer = await rawRequest(
            url,
            `GET /v1/sessions/s/events HTTP/1.1\r\nHost: localhost\r\n${name}: ${value}`,
          );
          expect(answer).toMatch(/^HTTP\/1\.1 (4\d\d|100)/);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("secrets", () => {
  it("stand in no answer, no event and no log line, whatever fails", async () => {
    const lines: string[] = [];
    const canary = "canary-5f2a";
    const store = createMemoryStore({ host: systemHost });
    const { url } = await openGateway(
      [{ fail: new Error(`connect to https://user:${canary}@provider.example failed`) }],
      { token: `${canary}-token`, log: { level: "debug", write: (line) => lines.push(line) } },
      { store },
    );
    const headers = { authorization: `Bearer ${canary}-token`, cookie: `a=${canary}` };
    store.sessions.list = () => Promise.reject(new CodedError("STORE_IO", "Cannot read operators-home/state.db: EIO."));
    const listed = await (await fetch(`${url}/v1/sessions?cursor=${canary}`, { headers })).text();
    expect(listed).toContain("store_io");
    expect(listed).not.toContain("operators-home");
    const turn = await (await post(`${url}/v1/sessions/s/turns`, { input: "Hi" }, headers)).text();
    expect(turn).toContain("failed");
    await until(() => Promise.resolve(lines.some((line) => line.includes("/v1/sessions/:sessionId/turns"))));
    const log = lines.join("");
    expect(log).toContain("STORE_IO");
    expect(log).not.toContain(canary);
    expect(listed).not.toContain(canary);
  });

  it("an error of the gateway's own is told as internal, under an id that the log has too", async () => {
    const lines: string[] = [];
    const store = createMemoryStore({ host: systemHost });
    store.sessions.read = () => Promise.reject(new TypeError("a defect with a detail"));
    const { url } = await openGateway([], { log: { level: "error", write: (line) => lines.push(line) } }, { store });
    const response = await fetch(`${url}/v1/sessions/s/messages`, { headers: { "x-request-id": "mine-1" } });
    const problem = (await response.json()) as { code: string; requestId: string; detail: string };
    expect([response.status, problem.code, problem.requestId]).toEqual([500, "internal", "mine-1"]);
    expect(problem.detail).not.toContain("defect");
    expect(lines.join("")).toMatch(
      /"requestId":"mine-1"[^\n]*a defect with a detail|a defect with a detail[^\n]*"mine-1"/,
    );
  });
});
