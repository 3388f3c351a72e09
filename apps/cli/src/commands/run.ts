import { checkedSessionId } from "@turnkeeper/agent-core";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { setUpAgent } from "../agent-set-up.ts";
import { approvalOf, Questions, terminalAsker } from "../approval.ts";
import { closeAll } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { Screen } from "../display/screen.ts";
import { JsonLinesView, showTurn, TextView } from "../display/turn-view.ts";
import { EarlyStop } from "../early-stop.ts";
import { exitCode } from "../exit-code.ts";
import { exitCodeOfTurn } from "../failure-code.ts";
import { leaveQueue, runQueue } from "../leaving.ts";
import { readMessage } from "../message.ts";
import { tellNextStep } from "../next-step.ts";
import { StopLadder } from "../stop-ladder.ts";
import type { StopSteps } from "../stop-ladder.ts";
import { runOptionsOf } from "../turn-flags.ts";
import type { TurnFlags } from "../turn-flags.ts";

/** `turnkeeper run`: one message, one turn, one exit code. */
export async function run(io: CommandIo, message: string | undefined, flags: TurnFlags): Promise<number> {
  const sessionId = flags.session === undefined ? systemHost.random.id() : checkedSessionId(flags.session);
  const screen = new Screen({ stdout: io.stdout, stderr: io.stderr, host: systemHost });
  // A message that came from stdin has used it up: nobody can answer there.
  const ask =
    message !== undefined
      ? terminalAsker(
          io,
          () => ladder.press(),
          () => ladder.shutDown(),
        )
      : undefined;
  const approval = approvalOf({ yes: flags.yes, ask });
  const view = flags.json ? new JsonLinesView(io) : new TextView(screen, { asks: approval === "ask" });
  const early = new EarlyStop(io, view, sessionId);
  let steps: StopSteps = early;
  const ladder = new StopLadder(io, {
    soft: () => steps.soft(),
    hard: () => steps.hard(),
    shutdown: () => steps.shutdown(),
  });
  let close = async (): Promise<void> => {};
  let forget = (): void => {};
  try {
    const text = await early.unlessAsked(readMessage(io, message));
    if (text === undefined) return early.tell();
    const setUp = await setUpAgent(io, flags, {
      yes: flags.yes,
      note: (line) => screen.note(line),
      stop: early.signal,
    }).catch((error: unknown) => {
      if (early.signal.aborted && CodedError.is(error, "CALL_INTERRUPTED")) return undefined;
      throw error;
    });
    if (!setUp) return early.tell();
    const { context, seat, seated } = setUp;
    close = () => closeAll([() => seat.close(), () => seated.close()]);
    if (early.signal.aborted) return early.tell();

    const questions = ask && new Questions({ screen, ask, agent: () => seated.agent, leave: () => ladder.shutDown() });
    if (flags.session === undefined && io.stderr.isTerminal) screen.tell(`Session ${sessionId}`, screen.noteStyle.dim);
    const turn = seated.agent.run(sessionId, text, { ...runOptionsOf(flags), approval });
    const stop = (hard: boolean): void => turn.stop({ hard, by: `Ctrl-C, pid ${process.pid}` });
    steps = {
      soft: () => {
        screen.tell("Stopping; Ctrl-C again stops at once.", screen.noteStyle.dim);
        stop(false);
      },
      hard: () => stop(true),
      shutdown: () => void seated.close(),
    };
    let isUnread = false;
    forget = io.stdout.onGone(() => {
      if (io.stdout.isTerminal) return ladder.shutDown();
      isUnread = true;
      turn.stop({ by: `closed output, pid ${process.pid}` });
    });
    const finished = await showTurn(turn, questions ? questions.over(view) : view);
    // What was pressed so far was meant for the own turn. What runs now is somebody else's message, to be left.
    const leave = (hard: boolean): void => leaveQueue(seated, screen, { hard });
    steps = { ...steps, soft: () => leave(false), hard: () => leave(true) };
    ladder.reset();
    await tellNextStep((line) => screen.note(line), finished, { place: context.place, store: seat.store });
    // A call that stopped waiting leaves at once: its message stays in the queue for whoever comes next.
    if (finished.outcome !== "queued") await runQueue(seated, screen);
    // Nobody reads: that the turn was stopped for it is no failure of whoever closed the pipe.
    if (isUnread && (finished.outcome === "interrupted" || finished.outcome === "queued")) return exitCode.ok;
    return exitCodeOfTurn(finished);
  } finally {
    forget();
    screen.idle();
    await close();
    ladder.dispose();
  }
}
