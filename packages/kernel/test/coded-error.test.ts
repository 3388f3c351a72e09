import { CodedError } from "@turnkeeper/kernel";
import { describe, expect, test } from "vitest";

/** Loads the module once more, as a second installed copy of the package would. */
async function secondCopy(): Promise<typeof CodedError> {
  const again = "../src/coded-error.ts?second-copy";
  const module = (await import(/* @vite-ignore */ again)) as { CodedError: typeof CodedError };
  return module.CodedError;
}

const leaseLost = (): CodedError<"LEASE_LOST"> =>
  new CodedError("LEASE_LOST", "The lease of session s1 was lost.", { context: { sessionId: "s1", fencingToken: 7 } });

describe("a coded error", () => {
  test("is an Error with a code, a message and a context", () => {
    const error = leaseLost();
    expect(error).toBeInstanceOf(Error);
    expect([error.name, error.code, error.message]).toEqual([
      "CodedError",
      "LEASE_LOST",
      "The lease of session s1 was lost.",
    ]);
    expect(error.context).toEqual({ sessionId: "s1", fencingToken: 7 });
    expect(error.stack).toContain("The lease of session s1 was lost.");
  });

  test("is recognised by its code, and by being coded at all", () => {
    const error: unknown = leaseLost();
    expect(CodedError.is(error)).toBe(true);
    expect(CodedError.is(error, "LEASE_LOST")).toBe(true);
    expect(CodedError.is(error, "STORE_BUSY")).toBe(false);
  });

  test("is not what merely looks like one", () => {
    const fromNode = Object.assign(new Error("no such file"), { code: "ENOENT" });
    for (const other of [fromNode, new Error("plain"), { code: "LEASE_LOST" }, "LEASE_LOST", null, undefined, 7]) {
      expect(CodedError.is(other)).toBe(false);
      expect(CodedError.is(other, "ENOENT")).toBe(false);
    }
  });

  test("is recognised across two installed copies of the package, both ways", async () => {
    const Second = await secondCopy();
    expect(Second).not.toBe(CodedError);
    const theirs: unknown = new Second("STORE_BUSY", "The store is busy.");
    expect(theirs).not.toBeInstanceOf(CodedError);
    expect(CodedError.is(theirs, "STORE_BUSY")).toBe(true);
    expect(Second.is(leaseLost(), "LEASE_LOST")).toBe(true);
    expect(Second.is(leaseLost(), "STORE_BUSY")).toBe(false);
  });

  test("is recognised as a subclass too", () => {
    class Refusal extends CodedError<"REFUSED"> {}
    expect(CodedError.is(new Refusal("REFUSED", "no"), "REFUSED")).toBe(true);
  });

  test("keeps its cause, and has none where none was given", () => {
    const cause = new Error("disk I/O error");
    expect(new CodedError("STORE_IO", "Writing failed.", { cause }).cause).toBe(cause);
    expect("cause" in new CodedError("STORE_IO", "Writing failed.")).toBe(false);
  });

  test("is code, message and context as JSON: no stack, no cause, no marker", () => {
    const error = new CodedError("STORE_IO", "Writing failed.", { cause: new Error("secret"), context: { path: "p" } });
    expect(JSON.parse(JSON.stringify({ error }))).toEqual({
      error: { code: "STORE_IO", message: "Writing failed.", context: { path: "p" } },
    });
    expect(Object.keys(error).toSorted()).toEqual(["code", "context", "name"]);
  });

  test("keeps its context from being changed, by its receiver or by the caller's object", () => {
    const context = { path: "p" };
    const error = new CodedError("STORE_IO", "Writing failed.", { context });
    context.path = "q";
    expect(error.context).toEqual({ path: "p" });
    expect(Object.isFrozen(error.context)).toBe(true);
    expect(new CodedError("STORE_IO", "Writing failed.").context).toEqual({});
  });
});
