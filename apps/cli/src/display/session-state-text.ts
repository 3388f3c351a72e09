import type { Pulse, SessionState, TurnStatus } from "@turnkeeper/agent-core";
import { unansweredCalls } from "@turnkeeper/state-store";
import type { AskedCall, CallAnswer, LeaseView, OpenTurn } from "@turnkeeper/state-store";
import { secondsText, whatIsNext } from "@turnkeeper/gateway/json";
import { oneLine } from "../one-line.ts";
import { approveCommand, runCommand, whyCommand } from "../printed-command.ts";
import type { CommandPlace } from "../printed-command.ts";
import { holderText } from "./finished-line.ts";
import { printable } from "./style.ts";
import type { Style } from "./style.ts";

const pulseText: Readonly<Record<Pulse, string>> = {
  alive: "alive",
  dead: "dead",
  leaked: "alive, but it knows nothing of this",
  unknown: "cannot be told from here",
};

const age = (nowMs: number, atMs: number): string => `${secondsText(Math.max(0, nowMs - atMs))} ago`;

function leaseText(lease: LeaseView, pulse: Pulse | undefined): string {
  const renewals = `${lease.renewCount} ${lease.renewCount === 1 ? "renewal" : "renewals"}`;
  const head = `fencing token ${lease.fencingToken}, ${renewals}`;
  if (pulse === "dead" || pulse === "leaked") return `${head}, but nobody holds it any more`;
  switch (lease.standing) {
    case "live":
      return `${head}, runs out in ${secondsText(lease.expiresInMs)} unless it is renewed`;
    case "expired":
      return `${head}, ran out ${secondsText(-lease.expiresInMs)} ago`;
    case "other-boot":
      return `${head}, from before this machine was restarted`;
  }
}

const progressText = (status: TurnStatus | undefined): string =>
  status
    ? `${printable(status.lastProgress)}, ${secondsText(status.idleMs)} ago`
    : "its process does not say what it is doing";

/** What a suspended turn waits for; of a running one nothing is asked. */
const askedCalls = (turn: OpenTurn): readonly AskedCall[] => (turn.state === "suspended" ? turn.approvals : []);

function answerText({ decision, by, output }: CallAnswer): string {
  if (output !== undefined) return `, its result came from ${printable(by)}`;
  return `, ${decision === "allow" ? "allowed" : "denied"} by ${printable(by)}`;
}

function askedText({ name, callId, askedAtMs, resultUntilMs, answer, child }: AskedCall, nowMs: number): string {
  const call = `${printable(name)} (call ${printable(callId)})`;
  const own = resultUntilMs === undefined ? "" : ": its client runs it, and sends the result";
  const decided = answer ? answerText(answer) : own;
  if (!child) return `${call}, asked ${age(nowMs, askedAtMs)}${decided}`;
  const since =
    child.endedAtMs === undefined
      ? `for ${secondsText(Math.max(0, nowMs - child.sinceMs))} by now`
      : `which ended ${age(nowMs, child.endedAtMs)}`;
  return `${call}${decided}: waits for the subagent in session ${child.sessionId}, ${since}`;
}

/** A session's state for a person. Ages are by the store's wall clock: they are shown, nothing is decided by them. */
export function stateLines(
  state: SessionState,
  { style, place }: { readonly style: Style; readonly place: CommandPlace },
): readonly string[] {
  // Stands at the end of what is said, so that it can be typed as it stands.
  const startOne = `start one with: ${runCommand(place, state.sessionId)}`;
  const { atMs: nowMs, lease, holderPulse, turn, lastStep, status, waiting } = state;
  const line = (name: string, text: string): string => `${style.dim(name.padEnd(9))} ${oneLine(printable(text))}`;
  const lines = [`${style.dim("session".padEnd(9))} ${style.bold(state.sessionId)}`];
  if (lease) {
    lines.push(
      line("holder", `${holderText(lease.holder)} (${pulseText[holderPulse ?? "unknown"]})`),
      line("lease", leaseText(lease, holderPulse)),
    );
  }
  if (turn) {
    lines.push(line("turn", `${turn.turnId}, started ${age(nowMs, turn.startedAtMs)}`));
    for (const [index, call] of askedCalls(turn).entries()) {
      lines.push(line(index === 0 ? "asks" : "", askedText(call, nowMs)));
    }
    const open = turn.state === "suspended" ? unansweredCalls(turn) : [];
    const first = open.find(({ child, resultUntilMs }) => !child && resultUntilMs === undefined);
    const [awaited] = open.flatMap(({ child }) => child ?? []);
    if (awaited) lines.push(line("look", whyCommand(place.path, awaited.sessionId)));
    if (first) lines.push(line("answer", approveCommand(place.path, state.sessionId, first.callId, "allow")));
    const step = lastStep ? `${printable(lastStep.what)}, stored ${age(nowMs, lastStep.atMs)}` : "nothing stored yet";
    lines.push(line("stored", step));
    if (turn.state === "running") lines.push(line("progress", progressText(status)));
    for (const { kind, name, endsInMs } of status?.waits ?? [])
      lines.push(
        line(
          "",
          `waits for ${kind} ${printable(name)}, ${endsInMs > 0 ? `at most ${secondsText(endsInMs)} more` : "past its bound"}`,
        ),
      );
    if (turn.stop)
      lines.push(
        line(
          "stop",
          `asked for ${age(nowMs, turn.stop.atMs)} by ${printable(turn.stop.by)}${turn.stop.hard ? ", hard" : ""}`,
        ),
      );
  }
  for (const [index, { input, pulse }] of waiting.entries()) {
    const runner = input.runner
      ? `for ${holderText(input.runner)} (${pulseText[pulse ?? "unknown"]})`
      : input.child
        ? "for the session's next turn"
        : "for whoever runs the session next";
    const kind = input.child ? "a subagent's end" : input.delivery;
    lines.push(
      line(
        index === 0 ? "waiting" : "",
        `${input.inputId} (${kind}), since ${age(nowMs, input.offeredAtMs).replace(/ ago$/, "")}, ${runner}`,
      ),
    );
  }
  if (waiting.length === 0) lines.push(line("waiting", "nothing"));
  lines.push(line("next", printable(whatIsNext(state, startOne))));
  return lines;
}
