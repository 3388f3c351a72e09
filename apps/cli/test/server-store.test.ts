import { findPostgres, startPostgres } from "@turnkeeper/postgres-server";
import type { PostgresServer } from "@turnkeeper/postgres-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { makeHome, startCli } from "./outside/built-cli.ts";
import { compatibleConfig, openAiStall, openAiText, serveModel } from "./outside/model-server.ts";

// Needs a server of PostgreSQL on this machine: its binaries, or PG_BIN.
describe.skipIf(findPostgres() === undefined)("a store on a server", () => {
  let server: PostgresServer | undefined;
  beforeAll(async () => void (server = await startPostgres()), 60_000);
  afterAll(() => server?.close());
  const urlOf = (schema: string): string => `${server?.url}?schema=${schema}`;

  it("is one store for two homes: what one runs the other waits for, stops, shows and verifies", async () => {
    const model = await serveModel(openAiStall("begun"), openAiText("the answer"));
    const [here, there] = [makeHome(compatibleConfig(model)), makeHome(compatibleConfig(model))];
    const store = ["--store", urlOf("shared")];
    const first = startCli(["run", "first message", "--session", "s", ...store], { home: here });
    await first.sees(/begun/);
    const second = startCli(["run", "second message", "--session", "s", ...store], { home: there });
    await second.sees(new RegExp(`held by pid ${first.pid} on .*waiting`), "stderr");
    expect(await runInside(["stop", "s", ...store], { home: there })).toMatchObject({ code: 0 });
    expect((await first.ended).code).toBe(130);
    expect(await second.ended).toMatchObject({ code: 0, stdout: "the answer\n" });
    const shown = await runInside(["sessions", "show", "s", "--json", ...store], { home: here });
    const { inputs } = JSON.parse(shown.stdout) as { readonly inputs: readonly { readonly end: string }[] };
    expect(inputs.map(({ end }) => end)).toEqual(["interrupted", "answered"]);
    expect(await runInside(["sessions", "verify", "--json", ...store], { home: there })).toMatchObject({
      code: 0,
      stdout: '{"violations":[]}\n',
    });
  }, 120_000);

  it("goes on on another home after kill -9 of its holder", async () => {
    const model = await serveModel(openAiStall("begun"), openAiText("went on"));
    const [here, there] = [makeHome(compatibleConfig(model)), makeHome(compatibleConfig(model))];
    const store = ["--store", urlOf("killed")];
    const first = startCli(["run", "first message", "--session", "s", ...store], { home: here });
    await first.sees(/begun/);
    first.child.kill("SIGKILL");
    const second = startCli(["run", "second message", "--session", "s", ...store], { home: there });
    expect(await second.ended).toMatchObject({ code: 0, stdout: "went on\n" });
    expect(await runInside(["sessions", "repair", ...store], { home: there })).toMatchObject({ code: 0 });
  }, 120_000);

  it("is looked at by doctor and config, which say nothing of its password", async () => {
    const url = urlOf("looked").replace("postgres@", "postgres:secret-word@");
    const home = makeHome(`store: { url: "${url}" }\nmodel: demo/echo`);
    expect(await runInside(["run", "hello"], { home })).toMatchObject({ code: 0 });
    for (const command of [["doctor"], ["config", "show"], ["sessions", "list"]]) {
      const { stdout, stderr } = await runInside(command, { home });
      expect(`${stdout}${stderr}`).not.toContain("secret-word");
      if (command[0] === "doctor") expect(stdout).toMatch(/schema looked 1, 0 running turns/);
    }
  });

  it("is not made by whoever only looks, and said to be missing", async () => {
    const home = makeHome();
    const store = urlOf("unmade");
    const doctor = await runInside(["doctor", "--store", store], { home });
    expect(doctor.stdout).toMatch(/note +store: none at \S+ \(--store\) yet/);
    for (const command of [
      ["sessions", "list"],
      ["why", "s"],
      ["sessions", "verify"],
    ]) {
      const { code, stderr } = await runInside([...command, "--store", store], { home });
      expect({ code, stderr }).toEqual({ code: 74, stderr: expect.stringContaining("There is no store at") });
    }
    const copied = await runInside(["store", "copy", store, `${home}/copy.db`], { home });
    expect(copied).toMatchObject({ code: 74, stderr: expect.stringContaining("There is no store at") });
  });

  it("that takes no writes is wrong to doctor", async () => {
    const home = makeHome("model: demo/echo");
    const store = urlOf("readable");
    expect(await runInside(["run", "hello", "--store", store], { home })).toMatchObject({ code: 0 });
    const readable = `${store}&options=-c%20default_transaction_read_only%3Don`;
    const { code, stdout } = await runInside(["doctor", "--store", readable], { home });
    expect(code).toBe(1);
    expect(stdout).toMatch(/wrong store: .* the server takes no writes/);
  });
});
