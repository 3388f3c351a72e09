import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";
import { describeModelError } from "@turnkeeper/models";
import type { ModelEnvironment, ModelFailure } from "@turnkeeper/models";
import { describe, expect, it, onTestFinished } from "vitest";
import { proxyFor } from "../src/proxy.ts";
import { streamServer } from "./loopback-server.ts";
import { answerOf, opened, streamParts } from "./model-answer.ts";
import { chatText } from "./written-streams.ts";

interface Proxy {
  readonly host: string;
  /** What was asked for: `HOST:PORT`, and how the caller said who it is. */
  readonly tunnels: { readonly to: string; readonly authorization: string | undefined }[];
}

/** A proxy on loopback that takes every name for the one server behind it, or answers with a status of its own. */
async function proxyTo(port: number, status = 200): Promise<Proxy> {
  const tunnels: Proxy["tunnels"] = [];
  const server = createServer();
  server.on("connect", (request, socket) => {
    socket.on("error", () => {});
    tunnels.push({ to: request.url ?? "", authorization: request.headers["proxy-authorization"] });
    if (status !== 200) return void socket.end(`HTTP/1.1 ${status} No\r\n\r\n`);
    const onward = connect(port, "127.0.0.1", () => socket.write("HTTP/1.1 200 Connection established\r\n\r\n"));
    onward.on("error", () => socket.destroy());
    onTestFinished(() => void onward.destroy());
    onward.pipe(socket).pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, tunnels };
}

const through = (env: ModelEnvironment): ReturnType<typeof opened> =>
  opened("openai-compatible/m", {
    env,
    providers: { "openai-compatible": { baseUrl: "http://models.example:8080/v1" } },
  });

describe("a model behind a proxy", () => {
  it("is called through a tunnel, with the name and password that stand in the proxy's address", async () => {
    const server = await streamServer(chatText, "openai");
    const proxy = await proxyTo(Number(new URL(server.url).port));
    const model = await through({ HTTP_PROXY: `http://me:pass%20word@${proxy.host}` });
    expect(answerOf(await streamParts(model.languageModel)).text).toBe("Grüße, 世界!");
    expect(proxy.tunnels).toEqual([
      { to: "models.example:8080", authorization: `Basic ${Buffer.from("me:pass word").toString("base64")}` },
    ]);
    expect(server.requests[0]?.headers["proxy-authorization"]).toBeUndefined();
  });

  it.each([
    [407, false],
    [403, false],
    [502, true],
    [503, true],
  ])("that answers %d was not reached, and nobody stopped the call", async (status, retryable) => {
    const proxy = await proxyTo(1, status);
    const model = await through({ ALL_PROXY: `http://me:secretword@${proxy.host}` });
    const failure = (await streamParts(model.languageModel).catch(describeModelError)) as ModelFailure;
    expect(failure).toMatchObject({ code: "MODEL_UNREACHABLE", retryable, isOfRoute: true });
    expect(failure.message).toContain(`ERR_PROXY_${status}`);
    expect(failure.message).toContain(`through the proxy ${proxy.host}`);
    expect(failure.message).not.toContain("secretword");
  });

  it("that nobody answers at was not reached", async () => {
    const { host } = await proxyTo(1);
    // A port on which nobody listens: blocked for servers, and free.
    const model = await through({ http_proxy: `http://${host.split(":")[0]}:9` });
    const failure = (await streamParts(model.languageModel).catch(describeModelError)) as ModelFailure;
    expect(failure).toMatchObject({ code: "MODEL_UNREACHABLE", retryable: true });
    expect(failure.message).toContain("HTTPS_PROXY, NO_PROXY");
  });

  it("is not looked for where the value is no proxy, and the value is not repeated", async () => {
    const opening = through({ HTTP_PROXY: "ftp://me:secretword@proxy" });
    await expect(opening).rejects.toThrow(/HTTP_PROXY is no usable proxy/);
    await expect(opening).rejects.not.toThrow(/secretword/);
  });
});

describe("the proxy for an address", () => {
  const https = { HTTPS_PROXY: "http://p:1" };
  it.each<[string, string, ModelEnvironment, string | undefined]>([
    ["is the one for its scheme", "https://a.example/v1", { ...https, HTTP_PROXY: "http://q:2" }, "p:1"],
    ["is the one for its scheme", "http://a.example/v1", { ...https, HTTP_PROXY: "http://q:2" }, "q:2"],
    ["is none where only another scheme has one", "http://a.example/v1", https, undefined],
    ["is the one for all where its scheme has none", "http://a.example", { ...https, all_proxy: "http://q:2" }, "q:2"],
    ["is read from the small name first", "https://a.example", { ...https, https_proxy: "http://q:2" }, "q:2"],
    ["may be written without a scheme", "https://a.example", { HTTPS_PROXY: " p:1 " }, "p:1"],
    ["is none where an empty small name says so", "https://a.example", { ...https, https_proxy: "" }, undefined],
    ["is none on this machine", "http://127.0.0.1:11434", { HTTP_PROXY: "http://p:1" }, undefined],
    ["is none on this machine", "http://localhost:11434", { HTTP_PROXY: "http://p:1" }, undefined],
    ["is none on this machine", "http://[::1]:11434", { HTTP_PROXY: "http://p:1" }, undefined],
    ["is none for all", "https://a.example", { ...https, NO_PROXY: "*" }, undefined],
    ["is none for a host", "https://a.example", { ...https, NO_PROXY: "b.example, A.example" }, undefined],
    ["is none below a domain", "https://a.b.example", { ...https, no_proxy: ".b.example" }, undefined],
    ["is none below a domain", "https://a.b.example", { ...https, no_proxy: "*.b.example" }, undefined],
    ["is not left out for a part of a name", "https://ab.example", { ...https, NO_PROXY: "b.example" }, "p:1"],
    ["is none at a port", "https://a.example", { ...https, NO_PROXY: "a.example:443" }, undefined],
    ["stays at another port", "https://a.example:8443", { ...https, NO_PROXY: "a.example:443" }, "p:1"],
    ["is none in a block", "https://10.1.2.3", { ...https, NO_PROXY: "10.0.0.0/8" }, undefined],
    ["stays outside a block", "https://11.1.2.3", { ...https, NO_PROXY: "10.0.0.0/8" }, "p:1"],
    ["is none in a block", "https://[fd00::1]", { ...https, NO_PROXY: "fd00::/8" }, undefined],
    ["is none for an address", "https://[fd00::1]", { ...https, NO_PROXY: "[fd00::1]:443" }, undefined],
    ["is not minded by what means nothing", "https://10.1.2.3", { ...https, NO_PROXY: "10.0.0.0/99,/8,:443" }, "p:1"],
  ])("%s (%s)", (_name, url, env, host) => {
    expect(proxyFor(new URL(url), env)?.host).toBe(host);
  });
});
