import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { systemHost } from "@turnkeeper/kernel";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { bundleProcess } from "./process-bundle.ts";
import type { ProcessBundle } from "./process-bundle.ts";
import { json, tokenFile, tokenServer } from "./token-server.ts";

let program: ProcessBundle;
beforeAll(async () => {
  program = await bundleProcess("refreshing-process.ts");
});
afterAll(() => program.remove());

const expiresAt = Math.floor(systemHost.clock.wallMs() / 1000) + 3600;
const stale = { access_token: "token-0", refresh_token: "refresh-0", expires_at: expiresAt };

interface Caller {
  readonly child: ChildProcess;
  /** Its next line; nothing when it has ended. */
  line(): Promise<string | undefined>;
}

function startCaller(options: Record<string, string>): Caller {
  const child = spawn(process.execPath, [program.script, JSON.stringify(options)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, line: async () => ((await lines.next()) as { value?: string }).value };
}

/** Everybody is ready before anybody calls. */
async function callAtOnce(callers: readonly Caller[]): Promise<(string | undefined)[]> {
  for (const caller of callers) expect(await caller.line()).toBe("ready");
  for (const { child } of callers) child.stdin?.write("go\n");
  return Promise.all(callers.map((caller) => caller.line()));
}

/** What a refresh costs a real endpoint: time for everybody else to come too. */
const slowly =
  (server: Awaited<ReturnType<typeof tokenServer>>): ((...args: Parameters<(typeof server.answers)[number]>) => void) =>
  (response) => {
    const number = server.posts.length;
    setTimeout(
      () =>
        json(200, { access_token: `token-${number}`, refresh_token: `refresh-${number}`, expires_in: 3600 })(response),
      300,
    );
  };

async function stampede(
  processCount: number,
  isLocked: "yes" | "no",
): Promise<{ ends: unknown[]; posts: number; token: unknown }> {
  const [tokens, file] = [await tokenServer(), tokenFile(stale)];
  tokens.answers.push(slowly(tokens));
  const options = { file: file.path, tokenUrl: tokens.url, isLocked };
  const callers = Array.from({ length: processCount }, () => startCaller(options));
  const ends = await callAtOnce(callers);
  return { ends, posts: tokens.posts.length, token: file.read()["access_token"] };
}

it(
  "CRED-1: twelve processes whose one token was refused make one request, and all send the new one",
  { timeout: 120_000 },
  async () => {
    const { ends, posts, token } = await stampede(12, "yes");
    expect(ends).toEqual(Array(12).fill("token-1"));
    expect({ posts, token }).toEqual({ posts: 1, token: "token-1" });
  },
);

it("CRED-1 control: without the lock four processes make several requests", { timeout: 120_000 }, async () => {
  expect((await stampede(4, "no")).posts).toBeGreaterThan(1);
});

describe("a process that is killed while the endpoint answers", { timeout: 60_000 }, () => {
  const killedThen = async (isUsedUp: boolean): Promise<{ end: unknown; file: Record<string, unknown> }> => {
    const [tokens, file] = [await tokenServer(), tokenFile(stale)];
    const options = { file: file.path, tokenUrl: tokens.url };
    const [first, second] = [startCaller(options), startCaller(options)];
    const again = isUsedUp
      ? json(400, { error: "invalid_grant" })
      : json(200, { access_token: "token-2", refresh_token: "refresh-2", expires_in: 3600 });
    tokens.answers.push(() => void first.child.kill("SIGKILL"), again);
    for (const caller of [first, second]) expect(await caller.line()).toBe("ready");
    first.child.stdin?.write("go\n");
    expect(await first.line()).toBeUndefined();
    expect(file.read()).toMatchObject({ access_token: "token-0", refresh_began_at: expect.any(String) });
    second.child.stdin?.write("go\n");
    return { end: await second.line(), file: file.read() };
  };

  it("holds nobody up: the next one refreshes with the same refresh token", async () => {
    const { end, file } = await killedThen(false);
    expect(end).toBe("token-2");
    expect(file).toMatchObject({ access_token: "token-2", refresh_token: "refresh-2" });
    expect(file["refresh_began_at"]).toBeUndefined();
  });

  it("is named when it had used the refresh token up", async () => {
    const { end } = await killedThen(true);
    expect(end).toMatch(/A refresh that began at .* was cut off before its answer could be stored.* Log in again\./);
  });
});
