import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";

export interface TokenServer {
  readonly url: string;
  /** The forms that came, in order. */
  readonly posts: URLSearchParams[];
  /** What the next posts are answered with; the last one stays. */
  readonly answers: ((response: ServerResponse, form: URLSearchParams) => void)[];
}

export const json =
  (status: number, value: object, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(value));
  };

/** An OAuth token endpoint on loopback; it gives `token-1`, `token-2`, … and takes each refresh token once. */
export async function tokenServer(): Promise<TokenServer> {
  const posts: URLSearchParams[] = [];
  const answers: TokenServer["answers"] = [];
  let valid = "refresh-0";
  let count = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const form = new URLSearchParams(Buffer.concat(chunks).toString());
      posts.push(form);
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer) return answer(response, form);
      if (form.get("refresh_token") !== valid) return json(400, { error: "invalid_grant" })(response);
      valid = `refresh-${++count}`;
      json(200, { access_token: `token-${count}`, refresh_token: valid, expires_in: 3600 })(response);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`, posts, answers };
}

export interface TokenFile {
  readonly path: string;
  read(): Record<string, unknown>;
  write(tokens: object): void;
}

/** A token file in a folder that goes with the test. */
export function tokenFile(tokens: object, name = "tokens.json"): TokenFile {
  const folder = mkdtempSync(path.join(tmpdir(), "turnkeeper-tokens-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, name);
  const write = (value: object): void => {
    writeFileSync(file, JSON.stringify(value));
    chmodSync(file, 0o600);
  };
  write(tokens);
  return {
    path: file,
    read: () => JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>,
    write,
  };
}
