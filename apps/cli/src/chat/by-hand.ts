import { systemHost } from "@turnkeeper/kernel";
import type { AskLine } from "../approval.ts";
import { exitCode } from "../exit-code.ts";
import { exitCodeOfTurn } from "../failure-code.ts";
import { chatActions } from "./chat-actions.ts";
import { commandWords, isChatCommand } from "./chat-command.ts";
import type { ChatParts } from "./chat-parts.ts";
import { ChatHistory } from "./editing/chat-history.ts";
import { HistoryFile } from "./editing/history-file.ts";
import { LineEditor } from "./line-editor.ts";
import { LineFeed } from "./line-feed.ts";
import type { LineInput, LineListeners } from "./line-input.ts";
import { PlainLines } from "./plain-lines.ts";
import { takeLine } from "./take-line.ts";

/** The editor where the cursor can be moved, with what was sent in earlier chats; else lines as the system reads them. */
function openInput({ io, screen, context }: ChatParts, listeners: LineListeners): LineInput {
  if (!io.stdout.canRedraw) return new PlainLines({ io, screen }, listeners);
  const file = new HistoryFile(context.home.folder, (problem) => screen.note(`turnkeeper: ${problem}`));
  const history = new ChatHistory(file);
  return new LineEditor({ io, screen, host: systemHost, history }, { completions: commandWords }, listeners);
}

/** Lines from a person, who may type at any time. Answers the exit code when they leave. */
export async function chatByHand(parts: ChatParts, answerWith: (ask: AskLine) => void): Promise<number> {
  const { io, conversation, departure, ladder } = parts;
  const actions = chatActions(parts);
  const lines = new LineFeed();
  const input: LineInput = openInput(parts, {
    onLine: (line) => lines.push(line),
    onInterrupt: (isEmpty) => {
      if (conversation.isRunning) ladder.press();
      else if (isEmpty) departure.leave();
      else input.clear();
    },
    onEnd: () => departure.leave(),
    onHangUp: () => ladder.shutDown(),
  });
  answerWith(async (question, signal) => {
    for (;;) {
      const answer = await input.ask(question, signal);
      if (answer === undefined || !isChatCommand(answer)) return answer;
      // A turn can be stopped, and looked into, while it asks.
      await takeLine(answer, parts, actions);
    }
  });
  departure.onLeave(() => lines.end());
  // A terminal that is gone reads as an error, not as an end.
  io.stdin.on("error", () => ladder.shutDown());

  const isStoreUnusable = (): boolean => {
    const { lastFinished } = conversation;
    return lastFinished !== undefined && exitCodeOfTurn(lastFinished) === exitCode.storeUnusable;
  };
  const promptWhenSettled = async (): Promise<void> => {
    await conversation.settled();
    // Every further turn would fail as this one did.
    if (isStoreUnusable()) departure.leave();
    else if (!departure.isLeaving) input.prompt();
  };
  try {
    if (conversation.isRunning) {
      input.watch();
      void promptWhenSettled();
    } else input.prompt();
    for await (const line of lines) {
      const wasRunning = conversation.isRunning;
      if (!wasRunning) input.watch();
      await takeLine(line, parts, actions);
      if (departure.isLeaving) break;
      if (!wasRunning) void promptWhenSettled();
    }
    await conversation.settled();
    return isStoreUnusable() ? exitCode.storeUnusable : exitCode.ok;
  } finally {
    input.close();
  }
}
