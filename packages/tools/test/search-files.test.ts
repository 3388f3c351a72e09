import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { expect, test, vi } from "vitest";
import { createSearchFilesTool } from "../src/index.ts";
import { rejection, workbench } from "./workbench.ts";

const tool = createSearchFilesTool({ host: systemHost });

// Backtracks for longer than anybody lives on a long run of a's.
const wild = "^(a+)+$";
const bait = `${"a".repeat(60)}b\n`;

test("lines that fit are answered with their places", async () => {
  const { folder, context } = await workbench();
  await mkdir(path.join(folder, "src"));
  await writeFile(path.join(folder, "src", "a.ts"), "const a = 1;\nlet b = 2;\n");
  await writeFile(path.join(folder, "b.ts"), "const c = 3;\n");
  expect(await tool.execute({ pattern: "^const" }, context)).toBe("b.ts:1: const c = 3;\nsrc/a.ts:1: const a = 1;");
  expect(await tool.execute({ pattern: "CONST", ignore_case: true, path: "src", limit: 1 }, context)).toBe(
    "src/a.ts:1: const a = 1;\n[the first 1 lines that fit; narrow the pattern, the path or the glob]",
  );
});

test("literal text means itself, and no match says how much was searched", async () => {
  const { folder, context } = await workbench();
  await writeFile(path.join(folder, "a"), "axb\n");
  await writeFile(path.join(folder, "b"), "\0");
  expect(await tool.execute({ pattern: "a.b", literal: true }, context)).toBe(
    "No line fits, in 1 file.\n[not searched: 1 that are binary, too large or not readable]",
  );
});

test("a pattern that is no regular expression is told before anything runs", async () => {
  const { context } = await workbench();
  const error = await rejection(tool.execute({ pattern: "(" }, context));
  expect(error).toMatchObject({ code: "SEARCH_FAILED" });
  expect(error.message).toContain("Set literal");
});

test("what is not there is refused", async () => {
  const { context } = await workbench();
  expect(await rejection(tool.execute({ pattern: "a", path: "missing" }, context))).toMatchObject({
    code: "FILE_UNUSABLE",
  });
});

test("a pattern that never ends is ended by the time limit, which names the file; the event loop stays free", async () => {
  const { folder, context, moved } = await workbench();
  await writeFile(path.join(folder, "bait"), bait);
  const host = virtualHost();
  const call = rejection(createSearchFilesTool({ host }).execute({ pattern: wild }, context));
  await moved;
  for (let tick = 0; tick < 20; tick++) await new Promise<void>((resolve) => void systemHost.timers.after(1, resolve));
  await host.advance(20_000);
  const error = await call;
  expect(error).toMatchObject({ code: "SEARCH_FAILED" });
  expect(error.message).toContain('did not end within 20 s. It was in "bait".');
  expect(CodedError.is(error) && error.context["receipt"]).toEqual({ steps: [{ step: "terminate", ended: true }] });
  expect(host.pendingTimerCount()).toBe(0);
});

test("what was found before a pattern ran wild is answered", async () => {
  const { folder, context, moveCount } = await workbench();
  await writeFile(path.join(folder, "a"), "aa\n");
  await writeFile(path.join(folder, "bait"), bait);
  const host = virtualHost();
  const call = createSearchFilesTool({ host }).execute({ pattern: wild }, context);
  // The first file, its matches, the second file.
  await expect.poll(moveCount, { timeout: 20_000 }).toBe(3);
  await host.advance(20_000);
  expect(await call).toMatch(/^a:1: aa\n\[The search did not end within 20 s\./);
});

test("a stop ends a pattern that never ends", async () => {
  const bench = await workbench();
  await writeFile(path.join(bench.folder, "bait"), bait);
  const call = tool.execute({ pattern: wild }, bench.context);
  await bench.moved;
  bench.stop();
  expect(await rejection(call)).toMatchObject({
    code: "CALL_INTERRUPTED",
    context: { receipt: { steps: [{ step: "terminate", ended: true }] } },
  });
});

test("the answer is bounded, and a name cannot pass for a line", async () => {
  const { folder, context } = await workbench();
  await writeFile(path.join(folder, "a"), `${"x".repeat(400)}\n`.repeat(1_000));
  await writeFile(path.join(folder, "0\nfake:1: x"), "x\n");
  const wide = createSearchFilesTool({ host: systemHost }, { searchMatchesMax: 1_000 });
  const answer = await wide.execute({ pattern: "x" }, context);
  expect(answer.length).toBeLessThan(66_000);
  expect(answer).toMatch(/^0\?fake:1: x:1: x\n/);
  expect(answer).toMatch(/\[\.\.\. \d+ more lines that fit\]/);
});

test("no listener stays on the turn's signals", async () => {
  const { context } = await workbench();
  const add = vi.spyOn(context.signal, "addEventListener");
  const remove = vi.spyOn(context.signal, "removeEventListener");
  await tool.execute({ pattern: "x" }, context);
  expect(add.mock.calls.length).toBeGreaterThan(0);
  expect(remove.mock.calls.length).toBe(add.mock.calls.length);
});
