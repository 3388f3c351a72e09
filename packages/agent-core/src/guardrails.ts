/**
 * Tells work from a loop: what one turn's calls have in common, counted as their results come in, in the order of the
 * calls. A pure state machine: no clock, no I/O; the same calls give the same judgements, so a turn that another process
 * goes on with is judged on from its stored entries.
 *
 * | what repeats                                             | counted by            | back to zero by                   |
 * | -------------------------------------------------------- | --------------------- | --------------------------------- |
 * | a call that fails in the same way                         | tool, arguments       | its success, a mutation           |
 * | failures of one tool, whatever its arguments              | tool                  | its success                       |
 * | a call that changes nothing and answers the same          | tool, arguments       | another answer, a mutation        |
 * | one call with one result, directly one after another      | all three             | anything else                     |
 * | two to four calls with their results, round and round     | laps                  | anything else                     |
 *
 * At the lower number the model is told beside the result; at the higher one, with hard stops, the turn ends. Each counts
 * once in a step, however many of its calls it is true of: a model that asks for many at once has heard of none of them,
 * and none that goes round ends before it was told. Whoever polls is not counted, a refusal of ours is no failure.
 */
import type { JsonValue, ToolStatus } from "@turnkeeper/state-store";
import { signatureOf } from "./call-signature.ts";
import type { ToolTraits } from "./tool.ts";

export type GuardRule = "exact-failure" | "tool-failures" | "no-progress" | "identical-calls" | "cycle";

/** Counts at which a rule speaks up, and at which it ends the turn where hard stops are on. */
export const guardThresholds: Readonly<Record<GuardRule, { readonly notice: number; readonly halt: number }>> =
  Object.freeze({
    "exact-failure": { notice: 2, halt: 5 },
    "tool-failures": { notice: 3, halt: 8 },
    "no-progress": { notice: 2, halt: 5 },
    "identical-calls": { notice: 3, halt: 5 },
    cycle: { notice: 3, halt: 5 },
  });

/** Calls of a tool in one turn, where it does not say so itself: what they start costs more than they do. */
const capsByName: ReadonlyMap<string, number> = new Map([
  ["web_search", 50],
  ["delegate", 50],
]);
const pollerName = /_poll$|_get_result$|^process(?:_manager)?$/;
/** A repeated result below this length costs less than the words that would stand for it. */
const stubLength = 512;
const longestPeriod = 4;

export interface GuardedCall {
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  readonly traits?: ToolTraits | undefined;
}

export interface GuardedResult {
  readonly status: ToolStatus;
  readonly output: JsonValue;
}

/** What a result means in the light of those before it. */
export interface GuardJudgement {
  /** For the model, beside the result. */
  readonly note?: string;
  /** The call whose result this is again: long, and still in the conversation. */
  readonly repeats?: string;
  /** The turn ends. Never without hard stops. */
  readonly halt?: { readonly rule: GuardRule; readonly detail: string };
}

/** A place under a cap, kept while its call is on the way. */
export interface Reservation {
  /** The call did not start after all: its place is free again. Safe to repeat. */
  rollback(): void;
}

/** How often something was so, counted once in a step. */
interface Count {
  readonly count: number;
  readonly step: number;
}

interface Seen {
  readonly key: string;
  readonly polls: boolean;
}

const texts: Readonly<Record<GuardRule, (name: string, count: number) => string>> = {
  "exact-failure": (name, count) => `${name} failed ${count} times with the same arguments`,
  "tool-failures": (name, count) => `${name} failed ${count} times without a success between`,
  "no-progress": (name, count) => `${name} answered the same ${count} times to the same arguments`,
  "identical-calls": (name, count) => `${name} was called ${count} times in a row with the same arguments and result`,
  cycle: (_name, count) => `the same calls with the same results came round ${count} times`,
};

export class Guardrails {
  readonly #hardStop: boolean;
  readonly #exactFailures = new Map<string, Count>();
  readonly #toolFailures = new Map<string, Count>();
  readonly #sameAnswers = new Map<string, Count & { readonly result: string }>();
  /** Results that the model can still see, by the call that has them. */
  readonly #inContext = new Map<string, { readonly result: string; readonly callId: string }>();
  readonly #results = new Map<string, string>();
  readonly #places = new Map<string, number>();
  /** The last calls with their results, the newest first. */
  #recent: readonly Seen[] = [];
  #streak = 0;
  #step = 0;
  /** The calls with their results of this step. */
  readonly #inStep = new Set<string>();
  /** By period: how many calls in a row were what stood so many before them. */
  readonly #runs: number[] = Array.from({ length: longestPeriod + 1 }, () => 0);

  constructor({ hardStop }: { readonly hardStop: boolean }) {
    this.#hardStop = hardStop;
  }

  /** The model is asked again: it hears what every call so far came to. */
  stepBegins(): void {
    this.#step++;
    this.#inStep.clear();
  }

  /** A place for a call under its tool's cap; nothing where the cap is used up. Independent of hard stops. */
  reserve({ name, traits }: Pick<GuardedCall, "name" | "traits">): Reservation | undefined {
    const cap = capOf(name, traits);
    const taken = this.#places.get(name) ?? 0;
    if (cap !== 0 && taken >= cap) return undefined;
    this.#places.set(name, taken + 1);
    let isKept = true;
    const rollback = (): void => {
      if (isKept) this.#places.set(name, (this.#places.get(name) ?? 1) - 1);
      isKept = false;
    };
    return { rollback };
  }

  /** What is told in place of a call for which there was no place. */
  refusalOf({ name, traits }: Pick<GuardedCall, "name" | "traits">): GuardedResult {
    const output = `Not run: ${name} may be called ${capOf(name, traits)} times in one turn, and was. Go on with what you have.`;
    return { status: "denied", output };
  }

  /** Takes the result of a call in, once for each call and in their order, and judges it. */
  observe(call: GuardedCall, result: GuardedResult): GuardJudgement {
    return this.#judge(call, result.status, signatureOf(result.output), result.output);
  }

  /** Takes in a result that a turn has stored, under the judgement it was stored with. */
  replay(call: GuardedCall, result: GuardedResult & { readonly repeats?: string | undefined }): void {
    const same = result.repeats === undefined ? undefined : this.#results.get(result.repeats);
    this.#judge(call, result.status, same ?? signatureOf(result.output), "");
    if (result.status !== "denied") this.#places.set(call.name, (this.#places.get(call.name) ?? 0) + 1);
  }

  /** The conversation was replaced by a summary: the model cannot look an earlier result up any more. */
  contextReplaced(): void {
    this.#inContext.clear();
  }

  #judge(call: GuardedCall, status: ToolStatus, result: string, output: JsonValue): GuardJudgement {
    const { name, callId, traits } = call;
    const polls = traits?.polls ?? pollerName.test(name);
    const signature = `${name} ${signatureOf(call.input)}`;
    this.#results.set(callId, result);
    if (status === "error") this.#countFailure(name, signature);
    if (status === "ok") this.#countSuccess(call, signature, result, polls);
    this.#countRepetition({ key: `${signature} ${result}`, polls });
    const repeats = status === "ok" ? this.#repeated(signature, result, callId, output) : undefined;
    const counts = this.#counts(call, signature, polls);
    const halting = this.#hardStop ? counts.find(({ rule, count }) => count >= guardThresholds[rule].halt) : undefined;
    const noticed = counts.find(({ rule, count }) => count >= guardThresholds[rule].notice);
    return {
      ...(repeats === undefined ? {} : { repeats }),
      ...(noticed === undefined ? {} : { note: noteOf(texts[noticed.rule](name, noticed.count)) }),
      ...(halting === undefined
        ? {}
        : { halt: { rule: halting.rule, detail: haltOf(texts[halting.rule](name, halting.count)) } }),
    };
  }

  #countFailure(name: string, signature: string): void {
    this.#exactFailures.set(signature, this.#once(this.#exactFailures.get(signature)));
    this.#toolFailures.set(name, this.#once(this.#toolFailures.get(name)));
    this.#sameAnswers.delete(signature);
  }

  #countSuccess({ name, traits }: GuardedCall, signature: string, result: string, polls: boolean): void {
    this.#toolFailures.delete(name);
    this.#exactFailures.delete(signature);
    if (traits?.mutates) {
      // What failed, or answered the same, may do otherwise now.
      this.#exactFailures.clear();
      this.#sameAnswers.clear();
    } else if (!polls) {
      const known = this.#sameAnswers.get(signature);
      this.#sameAnswers.set(signature, { result, ...this.#once(known?.result === result ? known : undefined) });
    }
  }

  #once(known: Count | undefined): Count {
    const { count, step } = known ?? { count: 0, step: -1 };
    return { count: step === this.#step ? count : count + 1, step: this.#step };
  }

  #countRepetition(seen: Seen): void {
    if (this.#inStep.has(seen.key)) return;
    this.#inStep.add(seen.key);
    this.#streak = this.#recent[0]?.key === seen.key ? this.#streak + 1 : 1;
    for (let period = 2; period <= longestPeriod; period++) {
      const isSame = this.#recent[period - 1]?.key === seen.key;
      this.#runs[period] = isSame ? (this.#runs[period] ?? 0) + 1 : 0;
    }
    this.#recent = [seen, ...this.#recent.slice(0, longestPeriod - 1)];
  }

  #repeated(signature: string, result: string, callId: string, output: JsonValue): string | undefined {
    const known = this.#inContext.get(signature);
    if (known?.result === result) {
      const { length } = typeof output === "string" ? output : JSON.stringify(output);
      return length >= stubLength ? known.callId : undefined;
    }
    this.#inContext.set(signature, { result, callId });
    return undefined;
  }

  /** What each rule has counted up to, the most telling first. */
  #counts(
    { name, traits }: GuardedCall,
    signature: string,
    polls: boolean,
  ): readonly { readonly rule: GuardRule; readonly count: number }[] {
    return [
      { rule: "exact-failure", count: this.#exactFailures.get(signature)?.count ?? 0 },
      { rule: "tool-failures", count: traits?.failsByDesign ? 0 : (this.#toolFailures.get(name)?.count ?? 0) },
      { rule: "identical-calls", count: polls ? 0 : this.#streak },
      { rule: "cycle", count: this.#laps() },
      { rule: "no-progress", count: this.#sameAnswers.get(signature)?.count ?? 0 },
    ];
  }

  #laps(): number {
    for (let period = 2; period <= longestPeriod; period++) {
      const round = this.#recent.slice(0, period);
      // One call again and again is a streak, and a round in which everybody polls is a wait.
      if (this.#streak >= period || round.every(({ polls }) => polls)) continue;
      const laps = Math.floor((this.#runs[period] ?? 0) / period) + 1;
      if (laps >= guardThresholds.cycle.notice) return laps;
    }
    return 0;
  }
}

function capOf(name: string, traits: ToolTraits | undefined): number {
  return traits?.maxPerTurn ?? capsByName.get(name) ?? 0;
}

function noteOf(what: string): string {
  return `Note: ${what}. Repeating it will not help: change the approach, or say what is missing.`;
}

function haltOf(what: string): string {
  return `The turn was ended because ${what}. Send a message to go on from here.`;
}

/** What stands in place of a long result that the model was given before. */
export function stubOf(callId: string, output: JsonValue): string {
  const { length } = typeof output === "string" ? output : JSON.stringify(output);
  return `The same result as that of call ${callId}, ${length} characters, not repeated here.`;
}
