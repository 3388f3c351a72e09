import type { AskLine } from "../approval.ts";
import { exitCode } from "../exit-code.ts";
import { exitCodeOfTurn } from "../failure-code.ts";
import { chatActions } from "./chat-actions.ts";
import type { ChatParts } from "./chat-parts.ts";
import { LineEditor } from "./line-editor.ts";
import { LineFeed } from "./line-feed.ts";
import { takeLine } from "./take-line.ts";

/** Lines from a person, who may type at any time. Answers the exit code when they leave. */
export async function chatByHand(parts: ChatParts, answerWith: (ask: AskLine) => void): Promise<number> {
  const { io, screen, conversation, departure, ladder } = parts;
  const actions = chatActions(parts);
  const lines = new LineFeed();
  const editor: LineEditor = new LineEditor(io, screen, {
    onLine: (line) => lines.push(line),
    onInterrupt: (isEmpty) => {
      if (conversation.isRunning) ladder.press();
      else if (isEmpty) departure.leave();
      else editor.clear();
    },
    onEnd: () => departure.leave(),
  });
  answerWith(editor.ask);
  departure.onLeave(() => lines.end());
  // A terminal that is gone reads as an error, not as an end.
  io.stdin.on("error", () => departure.leave());

  const isStoreUnusable = (): boolean => {
    const { lastFinished } = conversation;
    return lastFinished !== undefined && exitCodeOfTurn(lastFinished) === exitCode.storeUnusable;
  };
  const promptWhenSettled = async (): Promise<void> => {
    await conversation.settled();
    // Every further turn would fail as this one did.
    if (isStoreUnusable()) departure.leave();
    else if (!departure.isLeaving) editor.prompt();
  };
  try {
    editor.prompt();
    for await (const line of lines) {
      const wasRunning = conversation.isRunning;
      if (!wasRunning) editor.watch();
      await takeLine(line, parts, actions);
      if (departure.isLeaving) break;
      if (!wasRunning) void promptWhenSettled();
    }
    await conversation.settled();
    return isStoreUnusable() ? exitCode.storeUnusable : exitCode.ok;
  } finally {
    editor.close();
  }
}
