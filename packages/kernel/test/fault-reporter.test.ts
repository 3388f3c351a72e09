import { expect, it, onTestFinished } from "vitest";
import { faultReporter, messageOf } from "../src/index.ts";

function warnings(): string[] {
  const seen: string[] = [];
  const emit = process.emitWarning;
  process.emitWarning = (warning: string | Error) => void seen.push(String(warning));
  onTestFinished(() => {
    process.emitWarning = emit;
  });
  return seen;
}

it("a fault reporter hands each fault to whoever takes it, and nothing is warned of", () => {
  const seen = warnings();
  const taken: string[] = [];
  faultReporter((fault: Error) => taken.push(fault.message))(new Error("one"));
  expect(taken).toEqual(["one"]);
  expect(seen).toEqual([]);
});

it("a fault that nobody takes, or whose taker throws, is a process warning", () => {
  const seen = warnings();
  faultReporter()(new Error("nobody"));
  faultReporter(() => {
    throw new Error("the taker's own");
  })(new Error("thrown at"));
  expect(seen).toEqual(["nobody", "thrown at"]);
});

it("a thrown value says its message, or itself", () => {
  expect([new Error("why"), "text", 7, undefined].map(messageOf)).toEqual(["why", "text", "7", "undefined"]);
});
