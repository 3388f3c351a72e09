import { checkedSessionId } from "@turnkeeper/agent-core";
import type { TurnFinished } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import { setUpUnlessStopped } from "../agent-set-up.ts";
import { approvalOf, Questions } from "../approval.ts";
import type { AskLine } from "../approval.ts";
import { chatByHand } from "../chat/by-hand.ts";
import { chatByLines } from "../chat/by-lines.ts";
import { Conversation } from "../chat/conversation.ts";
import { Departure } from "../chat/departure.ts";
import { closeAll } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { Screen } from "../display/screen.ts";
import { JsonLinesView, TextView } from "../display/turn-view.ts";
import type { TurnView } from "../display/turn-view.ts";
import { exitCode } from "../exit-code.ts";
import { leaveQueue, runQueue } from "../leaving.ts";
import { tellNextStep } from "../next-step.ts";
import { StopLadder } from "../stop-ladder.ts";
import type { TurnFlags } from "../turn-flags.ts";

/** Ctrl-C stops the turn that is shown; where there is none, and where nobody types, it leaves. */
function ladderOf(
  io: CommandIo,
  screen: Screen,
  conversation: Conversation,
  departure: Departure,
  isByHand: boolean,
): StopLadder {
  const interrupt = (hard: boolean): void => {
    // Nothing of its own runs: what does was queued by others.
    if (departure.isLeaving && !conversation.isRunning) return leaveQueue(conversation.seated, screen, { hard });
    const isStopping = conversation.stop({ hard, by: `Ctrl-C, pid ${process.pid}` });
    if (!isStopping || !isByHand) departure.leave();
  };
  return new StopLadder(io, {
    soft: () => interrupt(false),
    hard: () => interrupt(true),
    shutdown: () => {
      departure.leave();
      void conversation.seated.close();
    },
  });
}

/** `turnkeeper chat`: a conversation, at a terminal or line by line from a pipe. */
export async function chat(io: CommandIo, flags: TurnFlags): Promise<number> {
  const sessionId = flags.session === undefined ? systemHost.random.id() : checkedSessionId(flags.session);
  const screen = new Screen({ stdout: io.stdout, stderr: io.stderr, host: systemHost });
  const use = { yes: flags.yes, note: (line: string) => screen.note(line) };
  const setUp = await setUpUnlessStopped(io, flags, use);
  if (!setUp) return exitCode.interrupted;
  const { context, seat, seated } = setUp;

  const isByHand = io.stdin.isTTY && io.stdout.isTerminal;
  // The line that questions are answered on is there once the conversation is.
  let ask: AskLine | undefined;
  const askLine: AskLine = async (question, signal) => ask?.(question, signal);
  const approval = approvalOf({ yes: flags.yes, ask: isByHand });
  const questions = new Questions({
    screen,
    ask: askLine,
    agent: () => conversation.seated.agent,
    leave: () => ladder.shutDown(),
  });
  const view = (options: { readonly isTold: boolean }): TurnView => {
    const asks = approval === "ask";
    const plain = flags.json ? new JsonLinesView(io) : new TextView(screen, { ...options, asks });
    return asks ? questions.over(plain) : plain;
  };
  const onFinished = (finished: TurnFinished): Promise<void> =>
    tellNextStep((line) => screen.note(line), finished, { place: context.place, store: seat.store });
  const departure = new Departure();
  const conversation = new Conversation(
    { screen, seat, approval, flags, view, onCall: () => ladder.reset(), onFinished },
    seated,
    sessionId,
  );
  const ladder = ladderOf(io, screen, conversation, departure, isByHand);
  const forget = io.stdout.onGone(() => {
    if (io.stdout.isTerminal) return ladder.shutDown();
    departure.leave();
    conversation.stop({ hard: false, by: `closed output, pid ${process.pid}` });
  });
  const parts = { io, context, seat, screen, conversation, departure, ladder, use };
  try {
    if (isByHand)
      screen.tell(
        `Session ${sessionId}, model ${seated.model.id}. /help lists the commands, Ctrl-D leaves.`,
        screen.noteStyle.dim,
      );
    if (flags.session !== undefined) await conversation.returnToSuspended();
    const code = isByHand ? await chatByHand(parts, (own) => (ask = own)) : await chatByLines(parts);
    if (!ladder.wasPressed && !io.stdout.isGone) await runQueue(conversation.seated, screen);
    // Whoever wants to be gone runs nothing more for others; a message of theirs that a turn has goes to its end.
    await conversation.seated.agent.close({ drain: true });
    return code;
  } finally {
    forget();
    screen.idle();
    await closeAll([() => seat.close(), () => conversation.seated.close()]);
    ladder.dispose();
  }
}
