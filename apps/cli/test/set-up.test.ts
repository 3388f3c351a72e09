import path from "node:path";
import { describe, expect, it } from "vitest";
import { agentOptionsOf } from "../src/agent-set-up.ts";
import { defaultConfig } from "../src/config/config.ts";
import type { Config } from "../src/config/config.ts";
import { exitCodeOfError, exitCodeOfTurn } from "../src/failure-code.ts";
import { locateHome } from "../src/home.ts";
import { chooseModel } from "../src/model-choice.ts";
import { locateStore } from "../src/store-location.ts";
import { cliError, failureLine } from "../src/cli-error.ts";
import { finishedLine } from "../src/display/finished-line.ts";

const at = "2026-01-01T00:00:00.000Z";

describe("exit codes", () => {
  for (const [outcome, reason, code] of [
    ["answered", undefined, 0],
    ["failed", undefined, 1],
    ["failed", "MODEL_AUTH", 1],
    ["failed", "MAX_ITERATIONS", 1],
    ["failed", "INTERNAL", 1],
    ["failed", "input_id_conflict", 2],
    ["failed", "STORE_CORRUPT", 74],
    ["failed", "STORE_REPLACED", 74],
    ["failed", "STORE_FULL", 74],
    ["failed", "STORE_BUSY", 75],
    ["failed", "STORE_CONTRACT", 1],
    ["busy", "session_busy", 75],
    ["interrupted", "stalled", 130],
    ["cancelled", "user-stop", 130],
    ["queued", undefined, 0],
    ["queued", "user-stop", 130],
    ["queued", "shutdown", 130],
  ] as const) {
    it(`${outcome}${reason === undefined ? "" : ` (${reason})`} is ${code}`, () => {
      expect(exitCodeOfTurn({ outcome, ...(reason === undefined ? {} : { reason }) })).toBe(code);
    });
  }

  it("of an error follows its code; a defect is 1", () => {
    expect(exitCodeOfError(cliError("USAGE", "x"))).toBe(2);
    expect(exitCodeOfError(cliError("NOT_FOUND", "x"))).toBe(1);
    expect(exitCodeOfError(cliError("HOME_UNUSABLE", "x"))).toBe(74);
    expect(exitCodeOfError(cliError("STORE_MISSING", "x"))).toBe(74);
    expect(exitCodeOfError(new Error("x"))).toBe(1);
  });
});

describe("the line that says what a command failed with", () => {
  it("is the message of a mistake, and points to --debug for a defect", () => {
    expect(failureLine(cliError("USAGE", "Do it\n  right."))).toBe("Do it right.");
    expect(failureLine(new TypeError("x is not\na function"))).toBe(
      "internal error: TypeError: x is not a function (run again with --debug for the details, and please report it)",
    );
  });
});

describe("the line that says how a call ended", () => {
  const finished = (facts: {
    readonly outcome: "answered" | "failed" | "interrupted" | "busy" | "queued" | "cancelled";
    readonly reason?: string;
    readonly detail?: string;
  }): string | undefined => finishedLine({ type: "turn.finished", sessionId: "s", at, text: "", ...facts });

  it("is absent for an answer and one line for everything else", () => {
    expect(finished({ outcome: "answered" })).toBeUndefined();
    expect(finished({ outcome: "failed", reason: "X", detail: "first\n  second" })).toBe("failed (X): first second");
    for (const outcome of ["interrupted", "busy", "queued", "cancelled", "failed"] as const)
      expect(finished({ outcome })).toMatch(/^\w+: \S/);
  });

  it("says what a reason of an interruption means", () => {
    for (const reason of [
      "user-stop",
      "user-message",
      "stalled",
      "lease-lost",
      "deadline",
      "shutdown",
      "parent",
      "crashed",
    ]) {
      expect(finished({ outcome: "interrupted", reason })).toMatch(
        new RegExp(`^interrupted \\(${reason}\\): [A-Z].*\\.$`),
      );
    }
  });
});

describe("which model runs", () => {
  const env = { OPENAI_API_KEY: "k" };
  it("the flag, then the file, then the default where it has its key, then the demo", () => {
    expect(chooseModel(defaultConfig, true, { flag: "a/b", environment: {} })).toEqual({
      name: "a/b",
      source: "--model",
    });
    expect(chooseModel(defaultConfig, true, { environment: {} })).toEqual({
      name: "openai/gpt-5-mini",
      source: "config.yaml",
    });
    expect(chooseModel(defaultConfig, false, { environment: env })).toEqual({
      name: "openai/gpt-5-mini",
      source: "default",
    });
    expect(chooseModel(defaultConfig, false, { environment: { OPENAI_API_KEY: " " } })).toEqual({
      name: "demo/tools",
      source: "fallback",
    });
  });

  it("the default looks for its key where the file says it is", () => {
    const config: Config = { ...defaultConfig, providers: { openai: { api_key_env: "MY_KEY" } } };
    expect(chooseModel(config, false, { environment: { MY_KEY: "k" } })).toMatchObject({ source: "default" });
    expect(chooseModel(config, false, { environment: env })).toMatchObject({ source: "fallback" });
  });
});

describe("where things are", () => {
  const io = { environment: {}, workingFolder: "/here", userFolder: "/users/me" };

  it("the home: --home, TURNKEEPER_HOME, then a folder of the user", () => {
    const environment = { TURNKEEPER_HOME: "~/elsewhere" };
    expect(locateHome({ ...io, environment }, "given")).toEqual({ folder: "/here/given", source: "--home" });
    expect(locateHome({ ...io, environment })).toEqual({ folder: "/users/me/elsewhere", source: "TURNKEEPER_HOME" });
    expect(locateHome(io)).toEqual({ folder: "/users/me/.turnkeeper", source: "default" });
  });

  it("the store: --store from where the user stands, store.url from the home, then state.db there", () => {
    const from = { configured: "", home: "/home-folder" };
    expect(locateStore(io, { ...from, flag: "my.db" })).toEqual({
      path: "/here/my.db",
      shown: "/here/my.db",
      source: "--store",
    });
    expect(locateStore(io, { ...from, flag: "file:///data/my.db" })).toEqual({
      path: "/data/my.db",
      shown: "/data/my.db",
      source: "--store",
    });
    expect(locateStore(io, { ...from, configured: "~/x.db" })).toEqual({
      path: "/users/me/x.db",
      shown: "/users/me/x.db",
      source: "config.yaml",
    });
    expect(locateStore(io, { ...from, configured: "x.db" })).toEqual({
      path: path.join("/home-folder", "x.db"),
      shown: path.join("/home-folder", "x.db"),
      source: "config.yaml",
    });
    const file = path.join("/home-folder", "state.db");
    expect(locateStore(io, from)).toEqual({ path: file, shown: file, source: "default" });
  });

  it("the store on a server: its URL, shown without its password, and a name in the home for what is of this host", () => {
    const url = "postgres://u:secret@h:5433/d?sslmode=require&schema=mine";
    const location = locateStore(io, { configured: url, home: "/home-folder" });
    expect(location).toMatchObject({ url, shown: "postgres://u@h:5433/d?schema=mine", source: "config.yaml" });
    expect(location.path).toMatch(/^\/home-folder\/server-[0-9a-f]{12}$/);
    const other = locateStore(io, { configured: "postgres://u:other@h:5433/d?schema=mine", home: "/home-folder" });
    expect(other.path).toBe(location.path);
  });

  it("a store that is no file is refused without repeating what may hold a password", () => {
    for (const flag of ["redis://u:secret@h", "postgres//u:secret@h/d"]) {
      expect(() => locateStore(io, { configured: "", home: "/h", flag })).toThrow(/^(?!.*secret)Cannot use the store/);
    }
    const file = locateStore(io, { configured: "", home: "/h", flag: "./postgres//u@h/d" });
    expect(file.path).toBe("/here/postgres/u@h/d");
  });
});

describe("an agent's options", () => {
  it("are the settings in milliseconds; a timeout of 0 turns the watchdog off", () => {
    expect(agentOptionsOf(defaultConfig, "/w", { audience: "terminal", isAttended: true })).toMatchObject({
      workspace: "/w",
      maxIterations: 90,
      lease: { ttlMs: 300_000, renewEveryMs: 60_000 },
      liveness: { timeoutMs: 600_000, pollMs: 15_000 },
      waitMs: 1_800_000,
    });
    const off = { ...defaultConfig, agent: { ...defaultConfig.agent, turn_liveness: { timeout_s: 0, poll_s: 15 } } };
    expect(agentOptionsOf(off, "/w", { audience: "terminal", isAttended: true }).liveness).toBe(false);
    expect(agentOptionsOf(defaultConfig, "/w", { audience: "terminal", isAttended: true }).delegation).toEqual({
      maxChildren: 50,
      maxDepth: 1,
    });
  });

  it.each([
    ["auto", true, false],
    ["auto", false, true],
    ["on", true, true],
    ["off", false, false],
  ] as const)(
    "hard_stop %s, watched %s: a turn that goes round in circles is ended: %s",
    (hard_stop, watched, hardStop) => {
      const config = { ...defaultConfig, agent: { ...defaultConfig.agent, guardrails: { hard_stop } } };
      expect(agentOptionsOf(config, "/w", { audience: "terminal", isAttended: watched }).guardrails).toEqual({
        hardStop,
      });
    },
  );
});
