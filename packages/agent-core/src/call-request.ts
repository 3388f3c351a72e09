import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { JsonValue, OnBusy, ParentCall } from "@turnkeeper/state-store";
import { storedSettings } from "./call-settings.ts";
import type { ResolvedAgentOptions } from "./options.ts";
import { checkedSessionId } from "./session-id.ts";
import type { Approval } from "./tool-call.ts";
import type { RunOptions } from "./turn-call.ts";

/** What a call asks for, checked and with nothing left open. */
export interface CallRequest {
  readonly sessionId: string;
  readonly inputId: string;
  readonly text: string;
  readonly onBusy: OnBusy;
  readonly redirect: boolean;
  readonly waitMs: number;
  readonly deadlineMs: number | undefined;
  readonly approval: Approval;
  readonly settings?: JsonValue;
  readonly queueLengthMax?: number;
  /** The call that the session is made for. */
  readonly parent?: ParentCall;
  /** Told that the turn is suspended, and that it goes on here. */
  readonly onPause?: (isPaused: boolean) => void;
}

/** What a tool call hands to a child. */
export interface ChildTask {
  /** New, unless the same task was handed to it before: then that is followed. */
  readonly sessionId: string;
  readonly text: string;
  readonly parent: ParentCall;
  /** Who may run the child's tools: whoever may run the parent's. */
  readonly approval: Approval;
  readonly deadlineMs: number | undefined;
  /** Told that the child waits for approval, and that it goes on here. */
  readonly onPause: (isPaused: boolean) => void;
}

const inputIdPattern = /^[\x21-\x7e]{1,200}$/;

function checkedInput(text: string, { inputBytesMax }: ResolvedAgentOptions, goesOn = false): string {
  if (text.trim() === "" && !goesOn) throw new CodedError("INPUT_EMPTY", "The message is empty; say something.");
  const bytes = Buffer.byteLength(text);
  if (bytes > inputBytesMax) {
    throw new CodedError(
      "INPUT_TOO_LARGE",
      `The message has ${bytes} bytes; at most ${inputBytesMax} are taken. Put it in a file and name the file.`,
    );
  }
  // A lone surrogate has no UTF-8 form: it would come back from the store as something else.
  return text.toWellFormed();
}

function checkedInputId(inputId: string): string {
  if (inputIdPattern.test(inputId)) return inputId;
  throw new CodedError(
    "INPUT_ID_INVALID",
    `Not an input id: ${JSON.stringify(inputId.slice(0, 60))}. Use 1 to 200 printable ASCII characters without spaces.`,
  );
}

function checkedDuration(option: string, valueMs: number | undefined, leastMs: number): number | undefined {
  if (valueMs === undefined || (Number.isFinite(valueMs) && valueMs >= leastMs)) return valueMs;
  const message = `Run option ${option}: expected a finite number of milliseconds of at least ${leastMs}, got ${String(valueMs)}.`;
  throw new CodedError("OPTION_INVALID", message, { context: { option } });
}

function checkedQueueLength(count: number): number {
  if (Number.isSafeInteger(count) && count >= 1) return count;
  const message = `Run option queueLengthMax: expected a whole number of at least 1, got ${String(count)}.`;
  throw new CodedError("OPTION_INVALID", message, { context: { option: "queueLengthMax" } });
}

/** Throws `INPUT_EMPTY`, `INPUT_TOO_LARGE`, `INPUT_ID_INVALID`, `SESSION_ID_INVALID` or `OPTION_INVALID`. */
export function requestOfRun(
  { random }: Pick<Host, "random">,
  agent: ResolvedAgentOptions,
  run: RunOptions & { readonly sessionId: string; readonly input: string },
): CallRequest {
  const { approval = "deny", settings, queueLengthMax } = run;
  checkedDuration("settings.resultWaitMs", settings?.resultWaitMs, 1);
  const kept = { ...settings, ...(approval === "allow" ? {} : { approval }) };
  return {
    sessionId: checkedSessionId(run.sessionId),
    inputId: checkedInputId(run.inputId ?? random.id()),
    text: checkedInput(run.input, agent, run.goesOn),
    onBusy: run.onBusy ?? "wait",
    redirect: run.redirect ?? false,
    waitMs: checkedDuration("waitMs", run.waitMs, 0) ?? agent.waitMs,
    deadlineMs: checkedDuration("deadlineMs", run.deadlineMs, 1),
    approval,
    ...(settings === undefined ? {} : { settings: storedSettings(kept, agent.inputBytesMax) }),
    ...(queueLengthMax === undefined ? {} : { queueLengthMax: checkedQueueLength(queueLengthMax) }),
  };
}

/** The first message of a session that is made for it. */
export function requestOfChild(
  agent: ResolvedAgentOptions,
  { sessionId, text, parent, approval, deadlineMs, onPause }: ChildTask,
): CallRequest {
  return {
    sessionId,
    // A child has one task, and whoever asks for it again means that one.
    inputId: `task/${sessionId}`,
    text: checkedInput(text, agent),
    onBusy: "wait",
    redirect: false,
    waitMs: agent.waitMs,
    deadlineMs: checkedDuration("deadlineMs", deadlineMs, 1),
    approval,
    parent,
    onPause,
  };
}

/** Work that nobody sent a message for: where the session is busy, it is not done. */
export function requestWithoutInput({ random }: Pick<Host, "random">, sessionId: string): CallRequest {
  return {
    sessionId: checkedSessionId(sessionId),
    inputId: random.id(),
    text: "",
    onBusy: "reject",
    redirect: false,
    waitMs: 0,
    deadlineMs: undefined,
    approval: "deny",
  };
}
