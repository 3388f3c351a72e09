import assert from "node:assert/strict";
import { CodedError } from "@turnkeeper/kernel";
import { unansweredCalls } from "../approval.ts";
import type { StateStore } from "../state-store.ts";
import type { AppendRequest, SearchHit } from "../transcript.ts";
import { createComparable } from "./comparable.ts";
import type { ConformanceHarness } from "./conformance-case.ts";
import { assertHistory } from "./history.ts";
import { draft, holderOf, runnerOf, says, summarises } from "./scene.ts";
import type { ScriptAction, ScriptStep } from "./script.ts";
import { GrantPlay, SessionPlay } from "./session-play.ts";

export interface ScriptRun {
  /** What each step answered and what its session was then; equal for two stores that keep the contract. */
  readonly answers: readonly unknown[];
  /** How often each answer was met, such as `append/stale-token`: a script that never got there has shown nothing. */
  readonly reach: Readonly<Record<string, number>>;
}

interface Answer {
  readonly kind: string;
}

/**
 * An answer of the run's own making. Lists come sorted: a store may keep them by wall time, which jumps in a script.
 */
function told(kind: string, facts: object): Answer {
  return { kind, ...facts };
}

/** What became of the notices of children from one step of their parent's session to the next. */
function childrenReached(before: SessionPlay["records"], after: SessionPlay["records"]): readonly string[] {
  const notices = (after?.inputs ?? []).filter(({ child }) => child !== undefined);
  return notices.flatMap(({ inputId, state }) => {
    const known = before?.inputs.find((input) => input.inputId === inputId);
    if (!known) return ["child/told"];
    return known.state === "pending" && state !== "pending" ? [`child/${state}`] : [];
  });
}

class ScriptPlay {
  readonly #harness: ConformanceHarness;
  readonly #sessions = new Map<string, SessionPlay>();
  #store: StateStore;
  #stepCount = 0;

  constructor(harness: ConformanceHarness, store: StateStore) {
    this.#harness = harness;
    this.#store = store;
  }

  /** Plays one step and checks what it made of the session. */
  async step(step: ScriptStep): Promise<{ readonly reached: readonly string[]; readonly answer: unknown }> {
    this.#stepCount++;
    // Nothing shares its moment with another thing, so that no order is left to chance.
    await this.#harness.host.advance(1);
    const play = this.#sessions.get(step.session) ?? new SessionPlay(step.session);
    this.#sessions.set(step.session, play);
    const answer = await this.#answerOf(play, step);
    const records = await this.#store.sessions.records(step.session);
    const lateCount = (of: SessionPlay["records"]): number => (of?.entries ?? []).filter(({ late }) => late).length;
    const cameLate = lateCount(records) > lateCount(play.records);
    if (records) assertHistory(play.records, records);
    else assert.ok(!play.records || answer.kind === "deleted", `session ${step.session} is gone`);
    const children = childrenReached(play.records, records);
    play.records = records;
    const pending = await this.#store.inbox.pending(step.session);
    const health = await this.#store.transcript.compactionHealth(step.session);
    const [waiting] = await this.#store.spool.waiting(step.session);
    const compared = play.comparable({
      answer,
      records,
      pending,
      health,
      waiting: waiting && { ...waiting, place: "" },
    });
    if (answer.kind === "deleted") play.comparable = createComparable();
    const { stepCount = 0 } = waiting ?? {};
    const cameBack = answer.kind !== "deleted" && answer.kind !== "imported" && stepCount < play.spooledCount;
    play.spooledCount = stepCount;
    const spool = [...(cameBack ? ["spool/replayed"] : []), ...(cameLate ? ["spool/late"] : [])];
    return { reached: [`${step.kind}/${answer.kind}`, ...spool, ...children], answer: compared };
  }

  async #answerOf(play: SessionPlay, step: ScriptAction): Promise<Answer> {
    try {
      return await this.#act(play, step);
    } catch (error) {
      if (CodedError.is(error)) return { kind: error.code };
      throw error;
    }
  }

  async #act(play: SessionPlay, step: ScriptAction): Promise<Answer> {
    const { sessionId } = play;
    const store = this.#store;
    switch (step.kind) {
      case "offer": {
        const { inputId, text, onBusy } = step;
        const dead = step.namesDead ? { deadGrant: play.grantOf(0).grant } : {};
        return store.inbox.offer({ sessionId, inputId, text, onBusy, runner: runnerOf(step.actor), ...dead });
      }
      case "acquire":
        return this.#acquire(play, step);
      case "renew":
        return store.leases.renew(play.grantOf(step.age).grant, step.ttlMs);
      case "release": {
        const known = play.grantOf(step.age);
        const released = await store.leases.release(known.grant);
        if (released.kind === "released") known.isRunning = false;
        return released;
      }
      case "append":
        return this.#append(play, step);
      case "keep":
        return this.#keep(play, step);
      case "compact":
        return this.#compact(play, step);
      case "note-health": {
        const { grant } = play.grantOf(step.age);
        if (step.coolDownMs === undefined) return store.transcript.setCompactionHealth({ grant });
        const health = { stallCount: this.#stepCount, outputCapCount: 0, thinCount: 0, error: "It was silent." };
        return store.transcript.setCompactionHealth({ grant, health, coolDownMs: step.coolDownMs });
      }
      case "begin": {
        const known = play.grantOf(step.age);
        if (!known.isRunning) known.begins(`turn-${this.#stepCount}`);
        const begun = await store.turns.begin(known.grant, known.turnId, [step.inputId]);
        if (begun.kind === "begun") known.isRunning = true;
        return begun;
      }
      case "take-steers": {
        const known = play.grantOf(step.age);
        const taken = await store.inbox.takeSteers(known.grant, known.turnId);
        return taken.kind === "taken" && taken.inputs.length > 0 ? { ...taken, kind: "taken-some" } : taken;
      }
      case "end":
        return this.#end(play, step);
      case "delegate":
        return this.#delegate(play, step);
      case "answer-child":
        return this.#answerChild(play, step);
      case "suspend":
        return this.#suspend(play, step);
      case "answer": {
        const asking = (play.records?.turns ?? []).findLast(({ approvals }) => approvals !== undefined);
        const approvals = asking?.approvals ?? [];
        const wanted = approvals.findLast(({ answer }) => answer !== undefined);
        const asked = (step.isSecond ? wanted : unansweredCalls({ approvals })[0]) ?? approvals.at(-1);
        const callId = asked?.callId ?? "call-none";
        const turnId = step.namesOther ? { turnId: "turn-none" } : {};
        const by = `step ${this.#stepCount}`;
        return store.turns.answer({ sessionId, callId, decision: step.decision, by, ...turnId });
      }
      case "settle-foreign": {
        const known = play.grantOf(step.age);
        const settled = await store.turns.settleForeign(known.grant);
        if (settled.kind === "settled") known.isRunning = false;
        return settled;
      }
      case "set-title":
        return store.sessions.setTitle(sessionId, step.title);
      case "withdraw":
        return store.inbox.withdraw(sessionId, step.inputId, step.end);
      case "abandon":
        return { kind: (await store.inbox.abandon(sessionId, runnerOf(step.actor).runnerId)) > 0 ? "some" : "none" };
      case "request-stop": {
        const stop = { hard: step.hard, reason: "user-stop", by: `step ${this.#stepCount}` } as const;
        return store.turns.requestStop(sessionId, stop);
      }
      case "delete": {
        const deleted = await store.sessions.delete(sessionId);
        // What was granted before stays on record: a late holder goes on writing, and must be fenced off.
        if (deleted.kind === "deleted") for (const known of play.grants) known.isRunning = false;
        return deleted;
      }
      case "transplant":
        return this.#transplant(play);
      case "load":
        return told("loaded", await this.#load(sessionId, step));
      case "search":
        return this.#search(step.text, step.limit, sessionId);
      case "list":
        return this.#list(step.limit);
      case "advance":
        await this.#harness.host.advance(step.ms);
        return { kind: "moved" };
      case "jump-wall":
        this.#harness.host.jumpWall(step.ms);
        return { kind: "moved" };
      case "reboot":
        this.#harness.host.reboot();
        this.#store = await this.#harness.reopen();
        return { kind: "opened" };
      case "reopen":
        this.#store = await this.#harness.reopen();
        return { kind: "opened" };
    }
  }

  async #transplant(play: SessionPlay): Promise<Answer> {
    const { sessionId } = play;
    const records = await this.#store.sessions.records(sessionId);
    const deleted = await this.#store.sessions.delete(sessionId);
    if (!records || deleted.kind !== "deleted") return deleted;
    for (const known of play.grants) known.isRunning = false;
    return this.#store.sessions.importSession(records);
  }

  async #acquire(play: SessionPlay, step: Extract<ScriptAction, { kind: "acquire" }>): Promise<Answer> {
    const { sessionId } = play;
    const before = await this.#store.leases.read(sessionId);
    const newest = play.grants[0];
    const repeats = step.isRepeat && newest !== undefined && newest.isRunning ? newest : undefined;
    const name = `${step.actor}-${this.#stepCount}`;
    const holder = repeats ? { ...holderOf(name), holderId: repeats.grant.holderId } : holderOf(name);
    const turnId = repeats?.turnId ?? `turn-${this.#stepCount}`;
    const reclaim = step.reclaims === undefined ? undefined : play.grantOf(step.reclaims).grant;
    const answer = await this.#store.leases.acquire({
      sessionId,
      holder,
      ttlMs: step.ttlMs,
      ...(reclaim ? { reclaim } : {}),
      ...(step.begins
        ? { begin: { turnId, runnerId: runnerOf(repeats?.runner ?? step.actor).runnerId, resumes: step.resumes } }
        : {}),
    });
    if (answer.kind !== "granted") return answer;
    const { fencingToken } = answer;
    if (repeats && fencingToken === repeats.grant.fencingToken) return { ...answer, kind: "granted-again" };
    const isNamed = reclaim?.fencingToken === before?.fencingToken && reclaim?.holderId === before?.holder.holderId;
    assert.ok(before?.standing !== "live" || isNamed, "LEASE-1: granted past a live lease");
    assert.ok(fencingToken > play.greatestToken, `LEASE-2: granted ${fencingToken} after ${play.greatestToken}`);
    play.greatestToken = fencingToken;
    const grant = { sessionId, holderId: holder.holderId, fencingToken };
    for (const older of play.grants) older.isRunning = false;
    if (answer.resumed) {
      const { turnId: resumedId } = answer.resumed;
      const before = play.records?.turns.find((turn) => turn.turnId === resumedId);
      assert.ok(before?.state === "suspended", `a turn was resumed that was ${before?.state}`);
      assert.deepEqual(unansweredCalls(before), [], "a turn was resumed with a question open");
      const openCalls = play.openCallsOf(resumedId);
      play.grants.unshift(new GrantPlay(grant, { runner: step.actor, turnId: resumedId, isRunning: true, openCalls }));
      return { ...answer, kind: "resumed" };
    }
    play.grants.unshift(new GrantPlay(grant, { runner: step.actor, turnId, isRunning: step.begins }));
    return answer.predecessors ? { ...answer, kind: "granted-over-predecessor" } : answer;
  }

  async #append(play: SessionPlay, step: Extract<ScriptAction, { kind: "append" }>): Promise<Answer> {
    const known = play.grantOf(step.age);
    const { grant, turnId } = known;
    const last = play.lastAppend;
    if (step.keys === "repeat" && last) {
      const repeated = await this.#store.transcript.append(last);
      return { ...repeated, kind: `repeated-${repeated.kind}` };
    }
    const request = { grant, turnId, ...this.#written(play, known, step) };
    const { entries } = request;
    const answer = await this.#store.transcript.append(request);
    if (answer.kind !== "committed") return answer;
    known.wrote(entries);
    play.lastAppend = request;
    return answer;
  }

  /** The entries and settlements of a step, as it draws them. */
  #written(
    play: SessionPlay,
    known: GrantPlay,
    step: Extract<ScriptAction, { kind: "append" | "keep" }>,
  ): Pick<AppendRequest, "entries" | "settledInputs"> {
    const last = play.lastAppend;
    const isConflict = step.keys === "conflict" && last !== undefined;
    const entries = isConflict
      ? last.entries.map(({ key }) => draft(key, { role: "notice", text: `other content in step ${this.#stepCount}` }))
      : known.drafts(`${this.#stepCount}`, step.entries);
    if (step.settles === "nothing") return { entries };
    const inputs = play.records?.inputs ?? [];
    const taken = inputs.find((input) => input.state === "taken" && input.turnId === known.turnId);
    const notice = inputs.find((input) => input.state === "pending" && input.child);
    const settled = { taken, notice, stranger: { inputId: "input-stranger" } }[step.settles];
    const inputIds = settled ? [settled.inputId] : [];
    return { entries, settledInputs: inputIds.map((inputId) => ({ inputId, end: "answered" as const })) };
  }

  /** Notices come from outside the session, so its children are each of one step, and only what they tell stays. */
  async #delegate(play: SessionPlay, step: Extract<ScriptAction, { kind: "delegate" }>): Promise<Answer> {
    const store = this.#store;
    const sessionId = `child-${this.#stepCount}`;
    const { turnId, runner } = play.grantOf(step.age);
    const parent = { sessionId: play.sessionId, turnId, callId: `call-${this.#stepCount}` };
    const task = {
      sessionId,
      inputId: "task",
      text: "a task",
      onBusy: "wait",
      runner: runnerOf(runner),
      parent,
    } as const;
    await store.inbox.offer(task);
    if (step.fate === "is-withdrawn") return store.inbox.withdraw(sessionId, "task", "cancelled");
    if (step.fate === "is-deleted")
      return told("child-deleted", { kept: (await store.sessions.delete(sessionId)).kind });
    if (step.fate === "waits") return { kind: "waits" };
    const begin = { turnId: "turn-child", runnerId: task.runner.runnerId };
    const holder = holderOf(sessionId);
    const granted = await store.leases.acquire({ sessionId, holder, ttlMs: 60_000, begin });
    assert.equal(granted.kind, "granted");
    const grant = { sessionId, holderId: holder.holderId, fencingToken: granted.fencingToken };
    if (step.fate === "crashes") return told("crashed", { kept: (await store.turns.settleForeign(grant)).kind });
    const entries = [says("said", `answer of ${sessionId}`)];
    return store.turns.end({ grant, turnId: begin.turnId, outcome: "answered", entries, release: true });
  }

  async #answerChild(play: SessionPlay, step: Extract<ScriptAction, { kind: "answer-child" }>): Promise<Answer> {
    const notice = (await this.#store.inbox.pending(play.sessionId)).find(({ child }) => child);
    if (!notice) return { kind: "nothing-told" };
    const { grant, turnId } = play.grantOf(step.age);
    const settledInputs = [{ inputId: notice.inputId, end: "answered" as const }];
    const entries = [says(`${this.#stepCount}.answer`, "the child has ended")];
    return this.#store.transcript.append({ grant, turnId, entries, settledInputs });
  }

  /** What the turn of a grant would have written, into the spool. */
  async #keep(play: SessionPlay, step: Extract<ScriptAction, { kind: "keep" }>): Promise<Answer> {
    const known = play.grantOf(step.age);
    const repeated = step.keys === "repeat" ? play.lastAppend : undefined;
    const kept = repeated ?? { grant: known.grant, turnId: known.turnId, ...this.#written(play, known, step) };
    await this.#store.spool.keep({ ...kept, ...(step.outcome ? { end: { outcome: step.outcome } } : {}) });
    if (!repeated) known.wrote(kept.entries);
    return told(step.outcome ? "kept-end" : "kept", {});
  }

  async #compact(play: SessionPlay, step: Extract<ScriptAction, { kind: "compact" }>): Promise<Answer> {
    const { grant, turnId } = play.grantOf(step.age);
    const { entries, compactionCount } = await this.#store.transcript.load(play.sessionId);
    const said = entries.filter((entry) => entry.body.role !== "summary");
    const last = said[Math.floor(step.cut * said.length)];
    if (!last) return { kind: "nothing-to-compact" };
    const basis = { throughSeq: last.seq, compactionCount: compactionCount - (step.isOld ? 1 : 0) };
    const summary = summarises(`${this.#stepCount}.summary`, `summary of step ${this.#stepCount}`);
    const answer = await this.#store.transcript.applyCompaction({ grant, turnId, basis, summary });
    if (answer.kind !== "applied") return answer;
    const context = (await this.#store.transcript.load(play.sessionId)).entries.map((entry) => entry.key);
    const kept = entries.slice(entries.indexOf(last) + 1).map((entry) => entry.key);
    assert.deepEqual(context, [summary.key, ...kept], "COMP-1: the summary replaced more or less than its basis");
    return answer;
  }

  async #end(play: SessionPlay, step: Extract<ScriptAction, { kind: "end" }>): Promise<Answer> {
    if (step.isRepeat && play.lastEnd) {
      const repeated = await this.#store.turns.end(play.lastEnd);
      return { ...repeated, kind: `repeated-${repeated.kind}` };
    }
    const known = play.grantOf(step.age);
    const { grant, turnId } = known;
    const entries = known.drafts(`${this.#stepCount}`, step.entries);
    const request = { grant, turnId, outcome: step.outcome, entries, release: step.releases };
    const answer = await this.#store.turns.end(request);
    if (answer.kind !== "ended") return answer;
    known.isRunning = false;
    play.lastEnd = request;
    return answer;
  }

  async #suspend(play: SessionPlay, step: Extract<ScriptAction, { kind: "suspend" }>): Promise<Answer> {
    const known = play.grantOf(step.age);
    const { grant, turnId } = known;
    const entries = known.drafts(`${this.#stepCount}`, ["call"]);
    const made = await this.#store.transcript.append({ grant, turnId, entries });
    if (made.kind !== "committed") return made;
    known.wrote(entries);
    const callIds = step.isStray ? ["call-none"] : known.openCalls.slice(0, step.callCount);
    const answer = await this.#store.turns.suspend({ grant, turnId, callIds });
    if (answer.kind !== "stale-token") known.isRunning = false;
    return answer;
  }

  /** A page from either end, and the next one behind it. */
  async #load(
    sessionId: string,
    { limit, all, isFromStart }: Extract<ScriptAction, { kind: "load" }>,
  ): Promise<object> {
    const size = isFromStart ? { first: limit } : { limit };
    const page = await this.#store.transcript.load(sessionId, { all, ...size });
    const seqs = page.entries.map(({ seq }) => seq);
    const rest = isFromStart ? { afterSeq: Math.max(0, ...seqs) } : { beforeSeq: Math.min(...seqs) };
    const next =
      all && seqs.length > 0 ? await this.#store.transcript.load(sessionId, { all, ...size, ...rest }) : page;
    return { page, next };
  }

  async #search(text: string, limit: number, sessionId: string): Promise<Answer> {
    const hits: SearchHit[] = [];
    let cursor: string | undefined;
    let pageCount = 0;
    do {
      const options = { sessionId, limit, ...(cursor === undefined ? {} : { cursor }) };
      const page = await this.#store.transcript.search(text, options);
      assert.ok(page.hits.length <= limit, `a page of ${limit} had ${page.hits.length} hits`);
      hits.push(...page.hits);
      cursor = page.nextCursor;
      pageCount++;
    } while (cursor !== undefined);
    return told(hits.length === 0 ? "nothing" : pageCount > 1 ? "pages" : "found", { hits });
  }

  async #list(limit: number): Promise<Answer> {
    const found: string[] = [];
    let cursor: string | undefined;
    let pageCount = 0;
    do {
      const page = await this.#store.sessions.list(cursor === undefined ? { limit } : { limit, cursor });
      found.push(...page.sessions.map((record) => record.sessionId));
      cursor = page.nextCursor;
      pageCount++;
    } while (cursor !== undefined);
    return told(pageCount > 1 ? "pages" : "page", { found: found.toSorted() });
  }
}

/**
 * Plays a script on a fresh store and checks after every step that nothing was lost, changed or doubled (it throws an
 * `AssertionError` that names the step). Play it on the memory store and on another: the answers must be equal.
 */
export async function runScript(harness: ConformanceHarness, script: readonly ScriptStep[]): Promise<ScriptRun> {
  const play = new ScriptPlay(harness, await harness.open());
  const answers: unknown[] = [];
  const reach: Record<string, number> = {};
  for (const [index, step] of script.entries()) {
    try {
      const { reached, answer } = await play.step(step);
      answers.push({ step, answer });
      for (const one of reached) reach[one] = (reach[one] ?? 0) + 1;
    } catch (error) {
      if (!(error instanceof assert.AssertionError)) throw error;
      const message = `Step ${index} of the script, ${JSON.stringify(step)}: ${error.message}`;
      throw new assert.AssertionError({ message, actual: error.actual, expected: error.expected });
    }
  }
  return { answers, reach };
}
