import { chmodSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import type { InsideOptions } from "./inside/command-line.ts";
import { makeFolder, makeHome } from "./outside/built-cli.ts";

const demo = "model: demo/echo\n";

/** One clear line, no stack. */
const oneLine = (text: RegExp): unknown =>
  expect.stringMatching(new RegExp(`^turnkeeper: (?=.*(?:${text.source}))[^\n]*\n$`));

async function refused(args: readonly string[], options: InsideOptions, code: number, told: RegExp): Promise<void> {
  const { stderr, ...result } = await runInside(args, options);
  expect(result).toEqual({ code, stdout: "" });
  // A store that refuses is followed by a line of what to type.
  const [line = "", next = "", ...others] = stderr.trimEnd().split("\n");
  expect(`${line}\n`).toEqual(oneLine(told));
  expect([next === "" || (code === 74 && next.startsWith("next: ")), others]).toEqual([true, []]);
}

describe("a choice of model that cannot be", () => {
  for (const [model, told] of [
    ["nonsense", /PROVIDER\/MODEL/],
    ["acme/x", /unknown provider "acme"/],
    ["local/x", /reserved/],
    ["demo/unheard-of", /no such demo model/],
    ["openai/gpt-5-mini", /OPENAI_API_KEY.*not set/],
    ["anthropic/x", /ANTHROPIC_API_KEY.*not set/],
    ["openai-compatible/x", /base_url/],
  ] as const) {
    it(`${model}: one line, exit 2, nothing stored`, async () => {
      const home = makeHome();
      await refused(["run", "hello", "--session", "s", "--model", model], { home }, 2, told);
      expect(await runInside(["sessions", "list", "--json"], { home })).toMatchObject({ stdout: '{"sessions":[]}\n' });
    });
  }

  it("configured without its key is refused too, though the default would give way to the demo", async () => {
    await refused(["run", "hello"], { home: makeHome("model: openai/gpt-5-mini\n") }, 2, /OPENAI_API_KEY/);
  });
});

describe("a message that cannot be sent", () => {
  it("empty, as an argument and on stdin: exit 2", async () => {
    const home = makeHome(demo);
    await refused(["run", "  "], { home }, 2, /empty/);
    await refused(["run"], { home, stdin: "\n" }, 2, /empty/);
  });

  it("5 MB on stdin: exit 2, whether or not it was all written", async () => {
    await refused(["run"], { home: makeHome(demo), stdin: "x".repeat(5_000_000) }, 2, /larger than 1048576 bytes/);
  });

  it("invalid UTF-8 on stdin: exit 2, and nothing is repaired in silence", async () => {
    await refused(
      ["run"],
      { home: makeHome(demo), stdin: Buffer.from([0x68, 0x69, 0xff, 0xfe]) },
      2,
      /not valid UTF-8/,
    );
  });

  it("comes from stdin as it is, without its last line break", async () => {
    const home = makeHome(demo);
    const result = await runInside(["run", "--session", "s"], { home, stdin: "two\nlines ✓\n" });
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining("You said: two\nlines ✓\n") });
  });
});

describe("a session id that is none", () => {
  for (const id of ["../x", "a b", "ä", "🙂", "", "-x", ".x", "x".repeat(300), "a/b", "a\nb"]) {
    it(`${JSON.stringify(id.slice(0, 20))}: exit 2`, async () => {
      await refused(["run", "hello", `--session=${id}`], { home: makeHome(demo) }, 2, /Not a session id/);
    });
  }

  it("is refused by the other commands too", async () => {
    const home = makeHome(demo);
    for (const args of [
      ["sessions", "show", "../x"],
      ["stop", "a b"],
      ["why", "é"],
    ])
      await refused(args, { home }, 2, /Not a session id/);
  });
});

describe("a configuration that is wrong", () => {
  for (const [name, config, told] of [
    ["that is not YAML", "agent: [unclosed\n", /config\.yaml.*not YAML/],
    ["that is no mapping", "- a\n- b\n", /must be a mapping/],
    [
      "with a wrong type",
      "model: demo/echo\nagent: { max_iterations: many }\n",
      /config\.yaml:2: agent\.max_iterations: .*"many".*using 90/,
    ],
    ["with an unknown key", "model: demo/echo\nagnet: {}\n", /agnet: is unknown/],
  ] as const) {
    it(`${name}: one warning that names it, and the turn runs`, async () => {
      const result = await runInside(["run", "hello", "--session", "s"], { home: makeHome(config) });
      expect(result.code).toBe(0);
      expect(result.stderr.split("\n").filter((line) => told.test(line))).toHaveLength(1);
    });
  }
});

describe("a home that cannot be", () => {
  it("a file: exit 74", async () => {
    const file = path.join(makeFolder(), "home");
    writeFileSync(file, "");
    await refused(
      ["run", "hello", "--model", "demo/echo"],
      { home: makeFolder(), env: { TURNKEEPER_HOME: file } },
      74,
      /a file/,
    );
  });

  it("in a folder that does not exist: exit 74", async () => {
    const home = path.join(makeFolder(), "missing", "home");
    await refused(
      ["run", "hello", "--model", "demo/echo", "--home", home],
      { home: makeFolder() },
      74,
      /does not exist/,
    );
  });

  it("missing: it is made, for this user alone", async () => {
    const home = path.join(makeFolder(), "home");
    expect(
      await runInside(["run", "hello", "--model", "demo/echo", "--home", home], { home: makeFolder() }),
    ).toMatchObject({ code: 0 });
    expect(statSync(home).mode & 0o777).toBe(0o700);
    expect(statSync(path.join(home, "state.db")).mode & 0o777).toBe(0o600);
    const doctor = await runInside(["doctor", "--json", "--home", home], { home: makeFolder() });
    expect(JSON.parse(doctor.stdout)).toMatchObject({ ok: true });
  });

  // Permission bits bind nobody who is root, and containers run tests as root.
  it.skipIf(process.getuid?.() === 0)("read-only: exit 74", async () => {
    const home = makeHome(demo);
    chmodSync(home, 0o500);
    await refused(["run", "hello"], { home }, 74, /permission/);
    chmodSync(home, 0o700);
  });
});

describe("a store that cannot be used", () => {
  const atStore = (store: string): readonly string[] => [
    "run",
    "hello",
    "--session",
    "s",
    "--model",
    "demo/echo",
    "--store",
    store,
  ];

  it("from a newer version: exit 74, and nothing is touched", async () => {
    const home = makeHome(demo);
    await runInside(["run", "hello", "--session", "s"], { home });
    const file = path.join(home, "state.db");
    const database = new Database(file);
    database.pragma("user_version = 99");
    database.close();
    await refused(["sessions", "list"], { home }, 74, /schema version 99/);
    const run = await runInside(["run", "hello", "--session", "s"], { home });
    expect(run).toMatchObject({ code: 74, stdout: "", stderr: expect.stringContaining("schema version 99") });
    expect(new Database(file, { readonly: true }).pragma("user_version", { simple: true })).toBe(99);
  });

  it("that is no database, or a folder: exit 74", async () => {
    const home = makeHome(demo);
    const text = path.join(home, "text.db");
    writeFileSync(
      text,
      "this is not a database, but it is long enough to have had a header if it were one. ".repeat(20),
    );
    const folder = path.join(home, "folder.db");
    mkdirSync(folder);
    for (const store of [text, folder]) {
      const result = await runInside(atStore(store), { home });
      expect(result).toMatchObject({ code: 74, stdout: "", stderr: expect.stringContaining(store) });
    }
  });

  it("named and not there, for a command that only looks: exit 74, and none is made", async () => {
    const home = makeHome(demo);
    await refused(["sessions", "list", "--store", "nowhere.db"], { home }, 74, /There is no store/);
    await refused(["sessions", "list", "--store", "nowhere.db"], { home }, 74, /There is no store/);
  });

  it("on a server that is not there: exit 74, and no password; on no server that is known: exit 2", async () => {
    const home = makeHome();
    const url = "postgres://user:secret@127.0.0.1:1/db";
    const result = await runInside(["sessions", "list", "--store", url], { home });
    expect(result).toMatchObject({ code: 74, stdout: "", stderr: expect.stringContaining("could not be reached") });
    expect(result.stderr).not.toContain("secret");
    await refused(
      ["sessions", "list", "--store", "mysql://user:secret@host/db"],
      { home: makeHome() },
      2,
      /path of a file/,
    );
  });
});

describe("a command line that is wrong", () => {
  for (const [args, told] of [
    [["fly"], /unknown command 'fly'/],
    [["sessions", "fly"], /unknown command 'fly'/],
    [["run", "hello", "--bogus"], /unknown option '--bogus'/],
    [["run", "hello", "there"], /too many arguments/],
    [["run", "hello", "--on-busy", "panic"], /Allowed choices are wait, reject, queue, steer, interrupt/],
    [["run", "hello", "--wait-timeout", "soon"], /number of seconds/],
    [["run", "hello", "--wait-timeout", "-1"], /number of seconds/],
    [["gateway", "--port", "70000"], /port from 0 to 65535/],
    [["sessions", "list", "--limit", "0"], /whole number/],
    [["stop"], /missing required argument 'id'/],
    [["run", "hello", "--input-id", "a b", "--model", "demo/echo"], /Not an input id/],
  ] as const) {
    it(`${args.join(" ")}: exit 2`, async () => {
      const result = await runInside(args, { home: makeHome() });
      expect(result).toMatchObject({ code: 2, stdout: "" });
      expect(result.stderr.split("\n").filter((line) => told.test(line))).toHaveLength(1);
      expect(result.stderr).not.toMatch(/^\s+at /m);
    });
  }
});

it("control characters of what was typed reach no terminal with the error about it", async () => {
  const title = "x\u001b]0;owned\u0007\u009b2J";
  const home = makeHome("model: demo/echo\n");
  for (const args of [[title], ["run", "hello", `--${title}`], ["sessions", "import", `/nowhere/${title}`]]) {
    const { code, stderr } = await runInside(args, { home });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("x]0;owned2J") });
    expect(stderr).not.toMatch(/[^\P{Cc}\n]/u);
  }
  expect((await runInside(["doctor", "--home", `/nowhere/${title}`], { home })).stdout).not.toMatch(/[^\P{Cc}\n]/u);
});

it("a line of JSON is one line to every reader, whatever was said", async () => {
  const home = makeHome("model: demo/echo\n");
  const said = "one\u2028two\u2029three\u0085four";
  const { stdout } = await runInside(["run", said, "--session", "s", "--json"], { home });
  const shown = await runInside(["sessions", "show", "s", "--json"], { home });
  const exported = await runInside(["sessions", "export", "s"], { home });
  for (const text of [stdout, shown.stdout, exported.stdout]) expect(text).not.toMatch(/[\u0085\u2028\u2029]/);
  expect(JSON.parse(shown.stdout)).toMatchObject({ entries: [{ text: said }, {}] });
  const imported = await runInside(["sessions", "import", "-", "--as", "t"], { home, stdin: exported.stdout });
  expect(imported).toMatchObject({ code: 0 });
  const again = await runInside(["sessions", "show", "t", "--json"], { home });
  expect(JSON.parse(again.stdout)).toMatchObject({ entries: [{ text: said }, {}] });
});
