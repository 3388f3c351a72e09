import { chmodSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { describeModelError, refreshableCredential } from "@turnkeeper/models";
import type { CredentialLock, CredentialSource } from "@turnkeeper/models";
import { describe, expect, it } from "vitest";
import { bodyOf, httpServer, startStream } from "./loopback-server.ts";
import type { LoopbackServer } from "./loopback-server.ts";
import { answerOf, opened, streamParts } from "./model-answer.ts";
import { json, tokenFile, tokenServer } from "./token-server.ts";
import type { TokenFile, TokenServer } from "./token-server.ts";
import { anthropicText, chatText } from "./written-streams.ts";

const nowS = Math.floor(systemHost.clock.wallMs() / 1000);
const expired = { access_token: "token-0", refresh_token: "refresh-0", expires_at: nowS - 10 };
const fresh = { ...expired, expires_at: nowS + 3600 };

/** A lock of this process alone: one after the other. */
function queue(): CredentialLock {
  let last: Promise<unknown> = Promise.resolve();
  return {
    hold: (work) => {
      const done = last.then(async () => ({ kind: "held", value: await work() }) as const);
      last = done.catch(() => undefined);
      return done;
    },
  };
}

const sourceOf = (server: TokenServer, file: TokenFile, lock: CredentialLock = queue()): CredentialSource =>
  refreshableCredential({ host: systemHost, lock }, { file: file.path, tokenUrl: server.url, clientId: "turnkeeper" });

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "nothing",
    (error: unknown) => (CodedError.is(error) ? error.code : String(error)),
  );

/** A model server that takes these tokens alone. */
const guardedServer = (accepted: readonly string[]): Promise<LoopbackServer> =>
  httpServer((request, response) => {
    const token = (request.headers.authorization ?? "").replace("Bearer ", "");
    if (!accepted.includes(token)) return json(401, { error: { message: "expired" } })(response);
    startStream(response);
    response.end(bodyOf(chatText, "openai"));
  });

const modelAt = (url: string, credential: CredentialSource): ReturnType<typeof opened> =>
  opened("openai-compatible/m", { providers: { "openai-compatible": { baseUrl: `${url}/v1`, credential } } });

describe("a token", () => {
  it("that has time left is sent as it is, and nobody is asked", async () => {
    const [tokens, file, api] = [await tokenServer(), tokenFile(fresh), await guardedServer(["token-0"])];
    const model = await modelAt(api.url, sourceOf(tokens, file));
    expect(answerOf(await streamParts(model.languageModel)).text).toBe("Grüße, 世界!");
    expect(tokens.posts).toHaveLength(0);
  });

  it.each([
    ["has expired", -10],
    ["has less than two minutes left", 119],
  ])("that %s is refreshed before it is used, once for many calls", async (_name, leftS) => {
    const [tokens, api] = [await tokenServer(), await guardedServer(["token-1"])];
    const file = tokenFile({ ...expired, expires_at: nowS + leftS, id_token: "kept" });
    const model = await modelAt(api.url, sourceOf(tokens, file));
    const answers = await Promise.all(Array.from({ length: 6 }, () => streamParts(model.languageModel)));
    expect(answers.map((parts) => answerOf(parts).finish)).toEqual(Array(6).fill("stop"));
    expect(tokens.posts.map((form) => Object.fromEntries(form))).toEqual([
      { grant_type: "refresh_token", refresh_token: "refresh-0", client_id: "turnkeeper" },
    ]);
    expect(file.read()).toMatchObject({ access_token: "token-1", refresh_token: "refresh-1", id_token: "kept" });
    expect(file.read()["expires_at"]).toBeGreaterThan(nowS + 3000);
    expect(file.read()["refresh_began_at"]).toBeUndefined();
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
    expect(readdirSync(path.dirname(file.path))).toEqual(["tokens.json"]);
    expect(api.requests).toHaveLength(6);
  });

  it.each([400, 403, 429, 500])(
    "that is not what a %d is about is not refreshed, and the next call sends it",
    async (status) => {
      const [tokens, file] = [await tokenServer(), tokenFile(fresh)];
      let isRefused = true;
      const api = await httpServer((_request, response) => {
        if (isRefused) return json(status, { error: { message: "No." } })(response);
        startStream(response);
        response.end(bodyOf(chatText, "openai"));
      });
      const model = await modelAt(api.url, sourceOf(tokens, file));
      expect(await codeOf(streamParts(model.languageModel))).toMatch(/^MODEL_/);
      isRefused = false;
      expect(answerOf(await streamParts(model.languageModel)).finish).toBe("stop");
      expect(api.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer token-0", "Bearer token-0"]);
      expect(tokens.posts).toHaveLength(0);
    },
  );

  it("that is refused with 401 is refreshed, and the same request goes out once more", async () => {
    const [tokens, file, api] = [await tokenServer(), tokenFile(fresh), await guardedServer(["token-1"])];
    const model = await modelAt(api.url, sourceOf(tokens, file));
    expect(answerOf(await streamParts(model.languageModel)).text).toBe("Grüße, 世界!");
    expect(api.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer token-0", "Bearer token-1"]);
    expect(api.requests[1]!.body).toEqual(api.requests[0]!.body);
    expect(tokens.posts).toHaveLength(1);
  });

  it("that somebody else has refreshed since is adopted, and nobody is asked", async () => {
    const [tokens, file, api] = [await tokenServer(), tokenFile(fresh), await guardedServer(["token-other"])];
    const source = sourceOf(tokens, file);
    expect(await source.token()).toBe("token-0");
    file.write({ ...fresh, access_token: "token-other" });
    const model = await modelAt(api.url, source);
    expect(answerOf(await streamParts(model.languageModel)).text).toBe("Grüße, 世界!");
    expect(tokens.posts).toHaveLength(0);
  });

  it("that somebody else has put there and that is about to expire too is refreshed", async () => {
    const [tokens, file] = [await tokenServer(), tokenFile(fresh)];
    const source = sourceOf(tokens, file);
    await source.token();
    file.write({ ...fresh, access_token: "token-other", expires_at: nowS + 60 });
    expect(await source.replacement("token-0")).toBe("token-1");
  });

  it("that is refused after its refresh too fails the call, and is asked for no third time", async () => {
    const [tokens, file, api] = [await tokenServer(), tokenFile(fresh), await guardedServer([])];
    const model = await modelAt(api.url, sourceOf(tokens, file));
    const failure = await streamParts(model.languageModel).catch(describeModelError);
    expect(failure).toMatchObject({
      code: "MODEL_AUTH",
      retryable: false,
      message: expect.stringMatching(/log in again/),
    });
    expect(api.requests).toHaveLength(2);
    expect(tokens.posts).toHaveLength(1);
  });

  it("is sent to Anthropic as a bearer and never beside a key", async () => {
    const api = await httpServer((_request, response) => {
      startStream(response);
      response.end(bodyOf(anthropicText, "anthropic"));
    });
    const credential = sourceOf(await tokenServer(), tokenFile(fresh));
    const model = await opened("anthropic/claude-x", { providers: { anthropic: { baseUrl: api.url, credential } } });
    await streamParts(model.languageModel);
    expect(api.requests[0]!.headers).toMatchObject({ authorization: "Bearer token-0" });
    expect(api.requests[0]!.headers["x-api-key"]).toBeUndefined();
  });

  it("of a file without a refresh token is sent until it is refused", async () => {
    const [tokens, api] = [await tokenServer(), await guardedServer(["token-0"])];
    const file = tokenFile({ access_token: "token-0", expires_at: nowS - 10 });
    const model = await modelAt(api.url, sourceOf(tokens, file));
    expect(answerOf(await streamParts(model.languageModel)).finish).toBe("stop");
    expect(await sourceOf(tokens, file).replacement("token-0")).toBeUndefined();
    expect(tokens.posts).toHaveLength(0);
  });
});

describe("a refresh", () => {
  it("whose lock cannot be taken at all says so by the file, and asks nobody", async () => {
    const [tokens, file] = [await tokenServer(), tokenFile(expired)];
    const denied = Object.assign(new Error("denied"), { code: "EACCES" });
    const failure = await sourceOf(tokens, file, { hold: () => Promise.reject(denied) })
      .token()
      .catch(describeModelError);
    const message = expect.stringContaining(`${file.path}: it cannot be locked (EACCES)`) as string;
    expect(failure).toMatchObject({ code: "MODEL_CREDENTIAL_INVALID", message, isOfRoute: true });
    expect(tokens.posts).toHaveLength(0);
  });

  it("of many sources that share a file and a lock is one", async () => {
    const [tokens, file, lock] = [await tokenServer(), tokenFile(expired), queue()];
    const sources = Array.from({ length: 5 }, () => sourceOf(tokens, file, lock));
    expect(await Promise.all(sources.map((source) => source.token()))).toEqual(Array(5).fill("token-1"));
    expect(tokens.posts).toHaveLength(1);
  });

  it("that waits for others too long is no failure of the credential", async () => {
    const busy: CredentialLock = { hold: async () => ({ kind: "busy" }) };
    const failure = await sourceOf(await tokenServer(), tokenFile(expired), busy)
      .token()
      .catch(describeModelError);
    expect(failure).toMatchObject({ code: "MODEL_CREDENTIAL_BUSY", retryable: true });
  });

  it.each([
    ["answers 503", json(503, {}), undefined],
    ["asks to wait", json(429, {}, { "retry-after": "7" }), 7000],
    ["answers with a page", (response: ServerReply) => void response.end("<html>"), undefined],
    ["closes the connection", (response: ServerReply) => void response.destroy(), undefined],
  ])("whose endpoint %s may be tried again, and leaves the token in the file", async (_name, answer, waitMs) => {
    const [tokens, file] = [await tokenServer(), tokenFile(expired)];
    tokens.answers.push(answer);
    const failure = await sourceOf(tokens, file).token().catch(describeModelError);
    expect(failure).toMatchObject({ code: "MODEL_CREDENTIAL_UNAVAILABLE", retryable: true });
    expect((failure as { retryAfterMs?: number }).retryAfterMs).toBe(waitMs);
    expect(file.read()).toMatchObject(expired);
  });

  it("that cannot be made now does not fail a call whose token has not expired", async () => {
    const [tokens, file] = [await tokenServer(), tokenFile({ ...expired, expires_at: nowS + 60 })];
    tokens.answers.push(json(503, {}));
    expect(await sourceOf(tokens, file).token()).toBe("token-0");
  });

  it("that the provider refuses is asked for once, by whomever, until somebody logs in", async () => {
    const [tokens, file] = [await tokenServer(), tokenFile({ ...expired, refresh_token: "revoked" })];
    const sources = Array.from({ length: 3 }, () => sourceOf(tokens, file));
    const lock = queue();
    for (const source of [...sources, sourceOf(tokens, file, lock)])
      expect(await codeOf(source.token())).toBe("MODEL_AUTH");
    expect(tokens.posts).toHaveLength(1);
    file.write(expired);
    expect(await sourceOf(tokens, file).token()).toBe("token-1");
  });

  it("whose answer holds no token keeps the new refresh token and says so", async () => {
    const [tokens, file] = [await tokenServer(), tokenFile(expired)];
    tokens.answers.push(json(200, { refresh_token: "refresh-new", access_token: "two words" }));
    expect(await codeOf(sourceOf(tokens, file).token())).toBe("MODEL_AUTH");
    expect(file.read()).toMatchObject({ access_token: "token-0", refresh_token: "refresh-new" });
  });

  it("that was cut off before its answer was stored is tried again, and is named when it had used the token up", async () => {
    const [tokens, file] = [await tokenServer(), tokenFile({ ...expired, refresh_began_at: "2026-01-02T03:04:05Z" })];
    expect(await sourceOf(tokens, file).token()).toBe("token-1");
    file.write({ ...expired, refresh_began_at: "2026-01-02T03:04:05Z" });
    const lost = await sourceOf(tokens, file).token().catch(describeModelError);
    expect(lost).toMatchObject({
      code: "MODEL_AUTH",
      message: expect.stringMatching(/began at 2026-01-02T03:04:05Z was cut off.*Log in again/),
    });
  });

  it("is not begun where its answer could not be stored", async () => {
    const tokens = await tokenServer();
    // A name that is just short enough leaves no room for the draft's.
    const file = tokenFile(expired, `${"t".repeat(240)}.json`);
    expect(await codeOf(sourceOf(tokens, file).token())).toBe("MODEL_CREDENTIAL_INVALID");
    expect(tokens.posts).toHaveLength(0);
    expect(file.read()).toEqual(expired);
  });
});

describe("a token file", () => {
  it.each([
    ["is not there", undefined, /not there.*Log in/],
    ["is no JSON", "secret-words", /no JSON object/],
    ["has no token", "{}", /no JSON object/],
    ["has a token that no header can carry", '{"access_token":"a b"}', /header/],
  ])("that %s is refused by its name and without its content", async (_name, text, told) => {
    const file = tokenFile(fresh);
    if (text === undefined) rmSync(file.path);
    else writeFileSync(file.path, text);
    const failure = await sourceOf(await tokenServer(), file)
      .token()
      .catch(describeModelError);
    expect(failure).toMatchObject({
      code: "MODEL_CREDENTIAL_INVALID",
      retryable: false,
      message: expect.stringMatching(told),
    });
    expect(JSON.stringify(failure)).not.toContain("secret-words");
  });

  it("that others may read is refused", async () => {
    const file = tokenFile(fresh);
    chmodSync(file.path, 0o644);
    expect(await codeOf(sourceOf(await tokenServer(), file).token())).toBe("MODEL_CREDENTIAL_INVALID");
  });
});

it("no message holds a token, whatever the server repeats", async () => {
  const [tokens, file] = [await tokenServer(), tokenFile(expired)];
  const api = await httpServer((request, response) =>
    json(400, { error: { message: `bad: ${request.headers.authorization}, refresh-1` } })(response),
  );
  const model = await modelAt(api.url, sourceOf(tokens, file));
  const failure = JSON.stringify(await streamParts(model.languageModel).catch(describeModelError));
  expect(failure).toContain("MODEL_BAD_REQUEST");
  expect(failure).not.toMatch(/token-1|refresh-1/);
});

it("an endpoint that is no address is refused at once", async () => {
  const file = tokenFile(fresh);
  const make = (): unknown =>
    refreshableCredential(
      { host: systemHost, lock: queue() },
      { file: file.path, tokenUrl: "ftp://x", clientId: "turnkeeper" },
    );
  expect(make).toThrow(/tokenUrl must be/);
});

type ServerReply = Parameters<TokenServer["answers"][number]>[0];
