import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { ensurePage } from "./inside/built-page.ts";
import { openGateway, rawRequest } from "./inside/open-gateway.ts";

const source = fileURLToPath(new URL("../console", import.meta.url));

beforeAll(ensurePage, 120_000);

const filesOf = (html: string): readonly string[] =>
  [...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, file = ""]) => file);

describe("the console's page", () => {
  it("is served to whoever knows the address; what it asks for is not", async () => {
    const { url } = await openGateway([], { token: "correct-horse" });
    const page = await fetch(`${url}/`);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const files = filesOf(await page.text());
    expect(files.map((file) => path.extname(file)).toSorted()).toEqual([".css", ".js", ".svg"]);
    for (const file of files) {
      const answer = await fetch(`${url}/${file}`);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    }
    expect((await fetch(`${url}/v1/turns`)).status).toBe(401);
  });

  it("may load from its gateway alone, may be framed by nobody, and makes no script of text", async () => {
    const { url } = await openGateway([]);
    const page = await fetch(`${url}/`);
    const policy = new Map(
      (page.headers.get("content-security-policy") ?? "").split("; ").map((one) => {
        const [name = "", ...values] = one.split(" ");
        return [name, values.join(" ")];
      }),
    );
    expect(Object.fromEntries(policy)).toMatchObject({
      "default-src": "'none'",
      "script-src": "'self'",
      "style-src": "'self'",
      "connect-src": "'self'",
      "frame-ancestors": "'none'",
      "base-uri": "'none'",
      "require-trusted-types-for": "'script'",
      "trusted-types": "'none'",
    });
    expect(page.headers.get("cache-control")).toBe("no-store");
    const html = await page.text();
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|https?:/);
  });

  it("is small", async () => {
    const { url } = await openGateway([]);
    const files = filesOf(await (await fetch(`${url}/`)).text());
    const script = files.find((file) => file.endsWith(".js")) ?? "";
    const whole = await fetch(`${url}/${script}`, { headers: { "accept-encoding": "identity" } });
    expect(whole.headers.get("content-encoding")).toBeNull();
    expect(gzipSync(new Uint8Array(await whole.arrayBuffer())).length).toBeLessThan(20_000);
    const zipped = await fetch(`${url}/${script}`);
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    expect(zipped.headers.get("vary")).toBe("accept-encoding");
  });

  it.each([
    "/console/..%2Fpackage.json",
    "/console/..%2f..%2f..%2fetc%2fpasswd",
    "/console/",
    "/console/none.js",
    "/page/index.html",
  ])("is a list of files, not a folder: %s", async (file) => {
    const { url } = await openGateway([]);
    expect(await rawRequest(url, `GET ${file} HTTP/1.1\r\nHost: localhost`)).toMatch(/^HTTP\/1\.1 404/);
  });

  it("is not served under a foreign name", async () => {
    const { url } = await openGateway([]);
    expect(await rawRequest(url, "GET / HTTP/1.1\r\nHost: evil.example")).toMatch(/^HTTP\/1\.1 403/);
  });

  it("has no way from text to markup in its source", () => {
    const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) =>
      /\.(ts|html)$/.test(file),
    );
    expect(files.length).toBeGreaterThan(20);
    const sink =
      /innerHTML|outerHTML|insertAdjacentHTML|setHTML|parseFromString|createContextualFragment|document\.write|srcdoc|\beval\b|new Function|javascript:/;
    for (const file of files)
      expect([file, sink.exec(readFileSync(path.join(source, file), "utf8"))?.[0]]).toEqual([file, undefined]);
  });
});
