import type { Turn, TurnEvent, TurnFinished } from "@turnkeeper/agent-core";
import type { Output } from "../output.ts";
import { PlainAnswer, RenderedAnswer } from "./answer-text.ts";
import type { AnswerText } from "./answer-text.ts";
import { compactionLine } from "./compaction-line.ts";
import { diffLines } from "./diff-text.ts";
import { finishedLine, holderText, isOwnProcess } from "./finished-line.ts";
import type { Screen } from "./screen.ts";
import { printable } from "./style.ts";
import { callSummary, shownResult } from "./tool-line.ts";
import { usageLine } from "./usage-line.ts";
import { secondsText } from "@turnkeeper/gateway/json";
import { jsonLine } from "../json-line.ts";

/** Whether the turn was stopped because nobody reads any more: whoever closed the pipe needs no word about it. */
function wasLeft(stdout: Output, event: TurnFinished): boolean {
  return stdout.isGone && stdout.failure === undefined && event.outcome === "interrupted";
}

function callText({ callId, childSessionId }: Extract<TurnEvent, { type: "approval.requested" }>): string {
  const where = childSessionId === undefined ? "" : ` of the subagent in session ${childSessionId}`;
  return `call ${printable(callId)}${where}`;
}

function deliveredText({ childSessionId }: Extract<TurnEvent, { type: "steer.delivered" }>): string {
  if (childSessionId === undefined) return "The message that came meanwhile goes to the model now.";
  return `What became of the subagent in session ${childSessionId} goes to the model now.`;
}

/** Shows the events of one call to `run`. */
export interface TurnView {
  show(event: TurnEvent): void;
  /** Resolves once what was shown has been read. */
  ready(): Promise<void>;
}

/** One JSON object a line, exactly as the events come; a person who watches still gets the reason of a failure. */
export class JsonLinesView implements TurnView {
  readonly #stdout: Output;
  readonly #stderr: Output;

  constructor({ stdout, stderr }: { readonly stdout: Output; readonly stderr: Output }) {
    this.#stdout = stdout;
    this.#stderr = stderr;
  }

  show(event: TurnEvent): void {
    this.#stdout.line(jsonLine(event));
    if (event.type !== "turn.finished") return;
    const line = wasLeft(this.#stdout, event) ? undefined : finishedLine(event);
    if (line !== undefined) this.#stderr.line(`turnkeeper: ${line}`);
  }

  ready(): Promise<void> {
    return this.#stdout.ready();
  }
}

/** What a failure advises whom nobody repeats it for. */
const adviceToRepeat = / Try again(?: later)?\.$/;

/** The answer's text on stdout as it comes, everything else on stderr. */
export class TextView implements TurnView {
  readonly #screen: Screen;
  readonly #answer: AnswerText;
  readonly #isTold: boolean;
  readonly #asks: boolean;
  #hasWaited = false;
  #hasStarted = false;
  #hasThought = false;

  /**
   * `isTold`: the person already knows that the message was queued. `asks`: whoever shows this puts what needs approval
   * to the person, so it is not said here too.
   */
  constructor(screen: Screen, options: { readonly isTold?: boolean; readonly asks?: boolean } = {}) {
    this.#screen = screen;
    this.#asks = options.asks ?? false;
    this.#isTold = options.isTold ?? false;
    this.#answer = screen.stdout.isTerminal ? new RenderedAnswer(screen.outStyle) : new PlainAnswer();
  }

  show(event: TurnEvent): void {
    const screen = this.#screen;
    const style = screen.noteStyle;
    switch (event.type) {
      case "input.accepted":
        screen.busy("starting");
        break;
      case "turn.waiting": {
        this.#hasWaited ||= !this.#hasStarted;
        screen.busy(this.#hasStarted ? "waiting for approval" : "waiting for the session");
        // Its own turn rests: what it waits for was asked before.
        if (this.#hasStarted) break;
        if (event.awaits) {
          const calls = event.awaits.map(printable).join(", ");
          const after = this.#isTold ? "" : "; this message comes after it";
          const what = `The turn on session ${event.sessionId} waits for an answer to call ${calls}${after}.`;
          if (event.elapsedMs < 1000) screen.tell(what, style.yellow);
          break;
        }
        const since = event.elapsedMs >= 1000 ? ` (${secondsText(event.elapsedMs)})` : "";
        const what = isOwnProcess(event.holder)
          ? `This process first runs an older message of session ${event.sessionId}${since}.`
          : `Session ${event.sessionId} is held by ${holderText(event.holder)}; waiting for it${since}.`;
        screen.tell(what, style.yellow);
        screen.busy("waiting for the session");
        break;
      }
      case "turn.started":
        if (this.#hasWaited) screen.tell("The session is free; starting.", style.dim);
        this.#hasWaited = false;
        this.#hasStarted = true;
        screen.busy("thinking");
        break;
      case "text.delta":
        screen.result(this.#answer.write(event.text));
        break;
      case "reasoning.delta":
        // Shown as a state, not as text: it is not the answer, and programs that read stdout must not take it for one.
        if (!this.#hasThought) screen.busy("reasoning");
        this.#hasThought = true;
        break;
      case "tool.started": {
        screen.result(this.#answer.breakSegment());
        const summary = callSummary(event.input, screen.stderr.columns - event.name.length - 4);
        screen.note(`${style.cyan("▸")} ${style.bold(printable(event.name))} ${summary}`);
        screen.busy(`running ${event.name}`);
        break;
      }
      case "tool.finished": {
        const took = secondsText(event.durationMs);
        const width = screen.stderr.columns - event.name.length - took.length - 8;
        const { isGood, summary } = shownResult(event, width);
        const mark = isGood ? style.green("✓") : style.red("✗");
        screen.note(`  ${mark} ${printable(event.name)} ${style.dim(`${took}  ${summary}`)}`);
        if (event.name === "edit_file")
          for (const line of diffLines(event.output, style, screen.stderr.columns)) screen.note(line);
        if (event.note !== undefined) screen.tell(`    ${printable(event.note)}`, style.yellow);
        this.#hasThought = false;
        screen.busy("thinking");
        break;
      }
      case "approval.requested":
        screen.idle();
        if (event.awaits === "result")
          screen.tell(`${printable(event.name)} is its client's to run (${callText(event)}).`, style.yellow);
        else if (!this.#asks)
          screen.tell(`${printable(event.name)} waits for approval (${callText(event)}).`, style.yellow);
        break;
      case "child.started":
        // By its name it is steered, stopped and looked at.
        screen.note(`  ${style.cyan("↳")} subagent in session ${event.childSessionId}`);
        screen.busy("waiting for subagents");
        break;
      case "child.finished": {
        const mark = event.outcome === "answered" ? style.green("✓") : style.red("✗");
        const took = secondsText(event.durationMs);
        screen.note(`  ${mark} subagent in session ${event.childSessionId} ${style.dim(`${took}  ${event.outcome}`)}`);
        break;
      }
      case "turn.stalled":
        screen.tell(
          `No progress for ${secondsText(event.idleMs)} (last: ${printable(event.lastProgress)}); trying to recover.`,
          style.yellow,
        );
        break;
      case "turn.resumed":
        screen.tell("The turn moves again.", style.dim);
        break;
      case "steer.delivered":
        // An answer may have ended before the message was taken: what comes next answers the message.
        screen.result(this.#answer.breakSegment());
        screen.tell(deliveredText(event), style.dim);
        break;
      case "model.retry": {
        screen.tell(
          `${printable(event.reason.replace(adviceToRepeat, ""))} Trying again in ${secondsText(event.delayMs)} (try ${event.attempt + 1}).`,
          style.yellow,
        );
        screen.busy("waiting to try again");
        break;
      }
      case "model.fallback":
        screen.tell(`${printable(event.reason)} Asking ${printable(event.to)} in its place.`, style.yellow);
        screen.busy("thinking");
        break;
      case "compaction.started":
      case "compaction.finished":
      case "compaction.deferred":
        screen.tell(compactionLine(event), style.dim);
        if (event.type === "compaction.started") screen.busy("summarising");
        else screen.busy("thinking");
        break;
      case "usage":
        break;
      case "turn.finished":
        this.#finish(event);
        break;
    }
  }

  ready(): Promise<void> {
    return this.#screen.ready();
  }

  #finish(event: TurnFinished): void {
    const screen = this.#screen;
    screen.idle();
    // A turn that somebody else ran streamed nothing here: its answer comes whole.
    if (this.#answer.isEmpty && event.text !== "") screen.result(this.#answer.write(event.text));
    screen.result(this.#answer.end());
    const isKnown = (this.#isTold && event.outcome === "queued") || wasLeft(screen.stdout, event);
    const line = isKnown ? undefined : finishedLine(event);
    if (line !== undefined) screen.tell(`turnkeeper: ${line}`);
    const used = usageLine(event);
    if (used !== undefined) screen.note(screen.noteStyle.dim(used));
  }
}

/** Shows a call's events until its last one, as fast as they are read. */
export async function showTurn(turn: Turn, view: TurnView): Promise<TurnFinished> {
  for await (const event of turn) {
    view.show(event);
    await view.ready();
  }
  return turn.result;
}
