/**
 * The conformance cases are the witnesses of the invariants that a store owns. Here each is run again on a store that
 * lacks the guard, and must see the outcome that the guard prevents.
 */
import { AssertionError } from "node:assert";
import { conformanceCases } from "@turnkeeper/state-store/testing";
import { expect, test } from "vitest";
import * as faulty from "./faulty-stores.ts";
import { memoryHarness } from "./memory-harness.ts";
import type { Fault } from "./memory-harness.ts";

/** What the case says of a store with this fault; undefined when it notices nothing. */
async function verdict(id: string, fault?: Fault): Promise<string | undefined> {
  const found = conformanceCases.find((one) => one.id === id);
  if (!found) throw new Error(`There is no conformance case ${id}.`);
  try {
    await found.run(memoryHarness(fault));
    return undefined;
  } catch (error) {
    if (error instanceof AssertionError) return error.message;
    throw error;
  }
}

/** The case passes with the guard, and fails without it because of this. */
async function isSeen(id: string, fault: Fault, because: RegExp): Promise<void> {
  expect(await verdict(id)).toBeUndefined();
  expect(await verdict(id, fault)).toMatch(because);
}

test("LEASE-1 control: without a look at the standing lease a second holder is granted beside the first", async () => {
  await isSeen("LEASE-1", faulty.takesStandingLeases, /changed the lease/);
  await isSeen("LEASE-1b", faulty.takesStandingLeases, /granted: a, b, c, d, e/);
});

test("LEASE-1 control: without a clock that never steps an hour of NTP frees a live lease", async () => {
  await isSeen("LEASE-1e", faulty.judgesByWallClock, /changed the lease/);
});

test("LEASE-2 control: without a token that outlives the release a later grant has the token of an earlier one", async () => {
  await isSeen("LEASE-2", faulty.restartsTokens, /tokens did not grow/);
});

test("LEASE-2 control: without a token that outlives the session its next grant begins at one again", async () => {
  await isSeen("SESSION-DELETE-b", faulty.forgetsTokensOnDelete, /fencing token: 1 after 1/);
});

test("LEASE-2 control: without the greater of both tokens a grant after an import has one that was granted before", async () => {
  await isSeen("SESSION-IMPORT-e", faulty.importsTokensOfElsewhere, /fencing token: 3 after 5/);
});

test("LEASE-4 control: without a check of holder and token a replaced holder frees its successor's session", async () => {
  await isSeen("LEASE-4", faulty.ignoresTokensOfHolders, /changed the lease/);
  await isSeen("LEASE-4b", faulty.ignoresTokensOfHolders, /changed the lease/);
});

test("APPEND-1 control: without a check of the token a replaced holder writes into its successor's transcript", async () => {
  await isSeen("APPEND-1", faulty.ignoresTokensOfWriters, /changed the session/);
});

test("APPEND-2 control: without one transaction a crash leaves an answer whose input was never settled", async () => {
  await isSeen("APPEND-2", faulty.settlesInASecondStep, /strictly deep-equal/);
});

test("INBOX-1 control: without storing before accepting a crash loses an accepted input", async () => {
  await isSeen("INBOX-1", faulty.acceptsBeforeItStores, /input input-1 is gone/);
});

test("INBOX-2 control: without a memory for ids a repeated offer is a second input", async () => {
  await isSeen("INBOX-2", faulty.forgetsInputIds, /changed the session/);
});

test("SPOOL-1 control: without a spool what the store refused is gone", async () => {
  await isSeen("SPOOL-1", faulty.keepsNothing, /0 !== 2/);
});

test("SPOOL-1 control: without the replay before the settlement a turn that ended itself counts as crashed", async () => {
  await isSeen("SPOOL-1b", faulty.replaysAfterSettling, /the turn is|the turn had ended itself|strictly equal|ended/);
});

test("COMP-1 control: without a check of the basis a late summary replaces what it never saw", async () => {
  await isSeen("COMP-1b", faulty.ignoresBasis, /changed the session/);
});

test("COMP-1 control: without a watermark a summary swallows what was appended since", async () => {
  await isSeen("COMP-1", faulty.summarisesEverything, /strictly deep-equal/);
});

test("PAIR-1 control: without closing calls at the end of a turn they stay without a result", async () => {
  await isSeen("PAIR-1", faulty.leavesCallsOpen, /strictly deep-equal/);
  await isSeen("PAIR-1b", faulty.leavesCallsOpen, /strictly deep-equal/);
});

test("QUEUE-NEWCOMER control: without a queue a newcomer runs past the waiter, and runs the waiter's input", async () => {
  await isSeen("QUEUE-NEWCOMER", faulty.servesWhoeverAsks, /changed the session/);
});

test("CHILD-NOTICE control: without the parent on the child's row its end is told to nobody", async () => {
  await isSeen("CHILD-NOTICE-b", faulty.forgetsParents, /told 0 times/);
  await isSeen("CHILD-NOTICE-e", faulty.forgetsParents, /told 0 times/);
});

test("CHILD-NOTICE control: without the settlement by the step the model is told twice", async () => {
  await isSeen("CHILD-NOTICE-c", faulty.leavesNoticesOfSteps, /strictly/);
});

test("rule 7.19 control: without a look at the answers a turn goes on that nobody has allowed to", async () => {
  await isSeen("APPROVAL-RESUME", faulty.resumesUnanswered, /was resumed with a question open/);
});

test("rule 7.19 control: without a look at the suspended turn the next message takes its session", async () => {
  await isSeen("APPROVAL-SUSPEND", faulty.givesSuspendedAway, /the session was given away|changed the session/);
  await isSeen("APPROVAL-TTL", faulty.givesSuspendedAway, /changed the session/);
});
