import { checkedSessionId } from "@turnkeeper/agent-core";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import { openChosenModel, seatAgent, takeSeat } from "../agent-set-up.ts";
import type { Seat } from "../agent-set-up.ts";
import { approvalOf } from "../approval.ts";
import type { AskLine } from "../approval.ts";
import { isChatCommand, runChatCommand } from "../chat/chat-command.ts";
import type { ChatActions } from "../chat/chat-command.ts";
import { Conversation, textViews } from "../chat/conversation.ts";
import { LineEditor } from "../chat/line-editor.ts";
import { pipedLines } from "../chat/piped-lines.ts";
import { cliError, failureLine } from "../cli-error.ts";
import { closeAll, readContext } from "../command-context.ts";
import type { CommandContext } from "../command-context.ts";
import { complain } from "../command-io.ts";
import type { CommandIo } from "../command-io.ts";
import { contextLines } from "../display/context-text.ts";
import { Screen } from "../display/screen.ts";
import { stateLines } from "../display/session-state-text.ts";
import { printable } from "../display/style.ts";
import { JsonLinesView } from "../display/turn-view.ts";
import { exitCode } from "../exit-code.ts";
import { exitCodeOfError, exitCodeOfTurn } from "../failure-code.ts";
import { runQueue } from "../leaving.ts";
import { chooseModel, modelNote } from "../model-choice.ts";
import { readSessionState } from "../session-state.ts";
import { StopLadder } from "../stop-ladder.ts";
import type { TurnFlags } from "../turn-flags.ts";

/** Everything one chat works with; made once, closed once. */
interface ChatParts {
  readonly io: CommandIo;
  readonly context: CommandContext;
  readonly seat: Seat;
  readonly screen: Screen;
  readonly conversation: Conversation;
}

function actionsOf(parts: ChatParts, leave: () => void): ChatActions {
  const { io, context, seat, screen, conversation } = parts;
  const say = (line: string): void => screen.note(line);
  return {
    conversation,
    say,
    leave,
    describeModel: () => `The model is ${conversation.seated.model.id}.`,
    changeModel: async (name) => {
      const model = await openChosenModel(io, context, { name, source: "--model" });
      const before = conversation.seated;
      conversation.seated = await seatAgent(io, context, seat, model);
      await before.close();
      say(model.note ?? `The model is ${model.id} now.`);
    },
    startNew: () => {
      conversation.sessionId = systemHost.random.id();
      say(`Session ${conversation.sessionId}`);
    },
    resume: async (id) => {
      const sessionId = checkedSessionId(id);
      const session = await seat.store.sessions.read(sessionId);
      if (!session) throw cliError("NOT_FOUND", `There is no session ${sessionId}; /new starts one.`);
      conversation.sessionId = sessionId;
      say(`Session ${sessionId}, ${session.entryCount} entries so far.`);
    },
    why: async () => {
      const state = await readSessionState(seat, conversation.sessionId);
      for (const line of stateLines(state, systemHost.clock.wallMs(), screen.noteStyle)) say(line);
    },
    context: async () => {
      const transcript = await seat.store.transcript.load(conversation.sessionId);
      for (const line of contextLines(transcript, conversation.sessionId, conversation.seated.model.id)) say(line);
    },
  };
}

/** Takes one line of a chat: a command or a message. Answers the exit code of a line that could not be taken. */
async function takeLine(line: string, parts: ChatParts, actions: ChatActions): Promise<number> {
  if (line.trim() === "") return exitCode.ok;
  try {
    if (isChatCommand(line)) await runChatCommand(line, actions);
    else parts.conversation.send(line.replace(/^\/\//, "/"));
    return exitCode.ok;
  } catch (error) {
    // A mistake, or a store that is busy, does not end the conversation; a defect does.
    if (!CodedError.is(error)) throw error;
    complain(parts.io, printable(failureLine(error)));
    return exitCodeOfError(error);
  }
}

/** What comes from a pipe until it ends, or the chat leaves and lets go of it. */
async function* untilLeaving(stdin: AsyncIterable<Buffer>, isLeaving: () => boolean): AsyncGenerator<Buffer> {
  try {
    yield* stdin;
  } catch (error) {
    if (!isLeaving()) throw error;
  }
}

/** Lines from a pipe: each one a turn, one after another. Answers the last exit code that was not 0. */
async function chatByLines(parts: ChatParts, isLeaving: () => boolean, actions: ChatActions): Promise<number> {
  const { io, conversation } = parts;
  let code: number = exitCode.ok;
  for await (const line of pipedLines(untilLeaving(io.stdin, isLeaving))) {
    if ("problem" in line) {
      complain(io, failureLine(line.problem));
      code = exitCodeOfError(line.problem);
      continue;
    }
    const before = conversation.lastFinished;
    const taken = await takeLine(line.text, parts, actions);
    await conversation.settled();
    const finished = conversation.lastFinished;
    const turnCode = finished && finished !== before ? exitCodeOfTurn(finished) : exitCode.ok;
    code = turnCode || taken || code;
    if (isLeaving() || code === exitCode.storeUnusable) break;
  }
  return code;
}

/** Lines from a person, who may type at any time. Resolves when they leave. */
async function chatByHand(
  parts: ChatParts,
  editor: LineEditor,
  lines: AsyncIterable<string>,
  actions: ChatActions,
  isLeaving: () => boolean,
): Promise<number> {
  const { conversation } = parts;
  const promptWhenSettled = async (): Promise<void> => {
    await conversation.settled();
    if (!isLeaving()) editor.prompt();
  };
  editor.prompt();
  for await (const line of lines) {
    const wasRunning = conversation.isRunning;
    if (!wasRunning) editor.watch();
    await takeLine(line, parts, actions);
    if (isLeaving()) break;
    if (!wasRunning) void promptWhenSettled();
  }
  await conversation.settled();
  return exitCode.ok;
}

/** Lines that are pushed, read one at a time. */
class LineFeed implements AsyncIterable<string> {
  readonly #lines: string[] = [];
  #wake: (() => void) | undefined;
  #isOver = false;

  push(line: string): void {
    this.#lines.push(line);
    this.#wake?.();
  }

  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<string> {
    for (;;) {
      const line = this.#lines.shift();
      if (line !== undefined) yield line;
      else if (this.#isOver) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** `turnkeeper chat`: a conversation, at a terminal or line by line from a pipe. */
export async function chat(io: CommandIo, flags: TurnFlags): Promise<number> {
  const sessionId = flags.session === undefined ? systemHost.random.id() : checkedSessionId(flags.session);
  const context = await readContext(io, flags);
  const choice = chooseModel(context.config, context.loaded.configured.has("model"), {
    flag: flags.model,
    environment: io.environment,
  });
  const model = await openChosenModel(io, context, choice);
  const seat = await takeSeat(context);
  const screen = new Screen({ stdout: io.stdout, stderr: io.stderr, host: systemHost });
  const note = modelNote(choice, model, context.config);
  if (note !== undefined) complain(io, note);

  const isByHand = io.stdin.isTTY && io.stdout.isTerminal;
  const feed = new LineFeed();
  let isLeaving = false;
  const leave = (): void => {
    isLeaving = true;
    feed.end();
    // A read of a pipe that is waited for has no other end.
    if (!isByHand) io.stdin.destroy();
  };
  let ask: AskLine | undefined;
  const approval = approvalOf(
    context.config,
    {
      yes: flags.yes,
      ask: isByHand ? (question, signal) => ask?.(question, signal) ?? Promise.resolve(undefined) : undefined,
    },
    screen,
  );
  const view = flags.json ? () => new JsonLinesView(io) : textViews(screen);
  const seated = await seatAgent(io, context, seat, model);
  const conversation = new Conversation(
    { screen, seat, approval, flags, view, onCall: () => ladder.reset() },
    seated,
    sessionId,
  );
  const parts: ChatParts = { io, context, seat, screen, conversation };

  const interruptTurn = (hard: boolean): void => {
    const isStopping = conversation.stop({ hard, by: `Ctrl-C, pid ${process.pid}` });
    if (!isStopping || !isByHand) leave();
  };
  const ladder = new StopLadder(io, {
    soft: () => interruptTurn(false),
    hard: () => {
      interruptTurn(true);
      // Nothing of its own runs: what does is queued by others, and is left to them.
      if (!conversation.isRunning) void conversation.seated.close();
    },
    shutdown: () => {
      leave();
      void conversation.seated.close();
    },
  });
  const forget = io.stdout.onGone(() => {
    leave();
    conversation.stop({ hard: false, by: `closed output, pid ${process.pid}` });
  });
  const actions = actionsOf(parts, leave);
  let editor: LineEditor | undefined;
  try {
    let code: number;
    if (isByHand) {
      screen.note(
        screen.noteStyle.dim(`Session ${sessionId}, model ${model.id}. /help lists the commands, Ctrl-D leaves.`),
      );
      const own = new LineEditor(io, screen, {
        onLine: (line) => feed.push(line),
        onInterrupt: (isEmpty) => {
          if (conversation.isRunning) ladder.press();
          else if (isEmpty) leave();
          else own.clear();
        },
        onEnd: leave,
      });
      editor = own;
      ask = own.ask;
      code = await chatByHand(parts, own, feed, actions, () => isLeaving);
    } else {
      code = await chatByLines(parts, () => isLeaving, actions);
    }
    if (!ladder.wasPressed && !io.stdout.isGone) await runQueue(conversation.seated, screen);
    return code;
  } finally {
    editor?.close();
    forget();
    screen.idle();
    await closeAll([() => seat.close(), () => conversation.seated.close()]);
    ladder.dispose();
  }
}
