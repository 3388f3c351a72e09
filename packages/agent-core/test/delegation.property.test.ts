import fc from "fast-check";
import { expect, test } from "vitest";
import { verifyRecords } from "@turnkeeper/state-store";
import type { Grant } from "@turnkeeper/state-store";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import { createBench } from "./bench.ts";
import type { Bench } from "./bench.ts";

/** What a child does, and what happens to the parent or to one child meanwhile. */
const childKind = fc.constantFrom("answers", "answers-later", "is-silent", "fails");
const blow = fc.record({
  atMs: fc.integer({ min: 0, max: 12_000 }),
  kind: fc.constantFrom("soft-stop", "hard-stop", "parent-is-settled", "child-is-settled", "child-is-stopped"),
  child: fc.nat({ max: 3 }),
});
const play = fc.record({
  children: fc.array(childKind, { minLength: 1, maxLength: 4 }),
  blows: fc.array(blow, { maxLength: 3 }),
});

type Play = typeof play extends fc.Arbitrary<infer Value> ? Value : never;

const delegate = defineTool({
  name: "delegate",
  description: "Delegates.",
  input: z.object({ task: z.string() }),
  execute: async ({ task }, context) => ({ ...(await context.delegate?.(task, { deadlineMs: 30_000 })) }),
});

async function settle(bench: Bench, sessionId: string): Promise<void> {
  const lease = await bench.store.leases.read(sessionId);
  if (!lease) return;
  const grant: Grant = { sessionId, holderId: lease.holder.holderId, fencingToken: lease.fencingToken };
  await bench.store.turns.settleForeign(grant);
}

async function childIds(bench: Bench): Promise<readonly string[]> {
  const { sessions } = await bench.store.sessions.list();
  return sessions.flatMap(({ sessionId, parent }) => (parent ? [sessionId] : [])).toSorted();
}

async function playOut({ children, blows }: Play, met: Record<string, number>): Promise<void> {
  const bench = createBench();
  const left: ScriptedStep[] = [
    { calls: children.map((kind, index) => ({ name: "delegate", input: { task: `${kind} ${index}` } })) },
  ];
  const step: ScriptedStep = async ({ prompt }) => {
    const text = JSON.stringify(prompt);
    if (!text.includes("You are a subagent")) return left.shift() ?? { text: "So be it." };
    if (text.includes("is-silent")) return { silentAfter: "Looking" };
    if (text.includes("fails")) return { fail: new Error("broken") };
    if (text.includes("later")) await new Promise<void>((resolve) => void bench.host.timers.after(8000, resolve));
    return { text: "Found it." };
  };
  const agent = await bench.agentOn(scriptedModel(Array.from({ length: 100 }, () => step)), {}, [delegate]);
  const turn = agent.run("s", "go");
  let nowMs = 0;
  for (const { atMs, kind, child } of blows.toSorted((one, other) => one.atMs - other.atMs)) {
    await bench.host.advance(atMs - nowMs);
    nowMs = atMs;
    const childId = (await childIds(bench))[child];
    if (kind === "soft-stop") turn.stop();
    else if (kind === "hard-stop") turn.stop({ hard: true });
    else if (kind === "parent-is-settled") await settle(bench, "s");
    else if (childId !== undefined && kind === "child-is-settled") await settle(bench, childId);
    else if (childId !== undefined) await agent.stop(childId, { hard: true });
  }
  await bench.finished(turn);
  await bench.host.advance(120_000);
  await bench.finished(agent.run("s", "and?"));

  const ids = await childIds(bench);
  const records = await bench.store.sessions.records("s");
  const notices = (records?.inputs ?? []).flatMap((input) => (input.child ? [input] : []));
  // One notice a child, and no notice that waits for ever.
  expect(notices.map(({ child }) => String(child?.sessionId)).toSorted()).toEqual(ids);
  expect(notices.map(({ state }) => state)).toEqual(ids.map(() => "settled"));
  for (const id of ids) {
    const byResult = (records?.entries ?? []).filter(
      ({ body }) => body.role === "tool" && JSON.stringify(body.output).includes(`"sessionId":"${id}"`),
    );
    const byMessage = (records?.entries ?? []).filter(({ body }) => body.role === "user" && body.child === id);
    const told = [byResult.length > 0 ? "by-result" : "", byMessage.length > 0 ? "by-message" : ""].filter(Boolean);
    expect(byResult.length + byMessage.length, `${id} was told of ${told.join(" and ") || "never"}`).toBe(1);
    met[told[0] ?? ""] = (met[told[0] ?? ""] ?? 0) + 1;
    const child = await bench.store.sessions.records(id);
    expect(child?.turns.every(({ state }) => state === "ended")).toBe(true);
    expect(child && verifyRecords(child)).toEqual([]);
  }
  for (const { child } of notices) met[child?.outcome ?? ""] = (met[child?.outcome ?? ""] ?? 0) + 1;
  expect(records && verifyRecords(records)).toEqual([]);
  await bench.close();
  expect(bench.host.pendingTimerCount()).toBe(0);
}

test("rule 7.20: every child's end is told to the model exactly once, whoever is stopped or dies, and whenever", async () => {
  const met: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(play, (one) => playOut(one, met)),
    { numRuns: 40 },
  );
  // A run that never met these has shown nothing of them.
  for (const outcome of ["by-result", "by-message", "answered", "interrupted", "failed"])
    expect(met[outcome] ?? 0, `${outcome} was hardly met`).toBeGreaterThanOrEqual(3);
});
