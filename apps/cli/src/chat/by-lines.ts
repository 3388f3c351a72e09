import { failureLine } from "../cli-error.ts";
import { complain } from "../command-io.ts";
import { exitCode } from "../exit-code.ts";
import { exitCodeOfError, exitCodeOfTurn } from "../failure-code.ts";
import { chatActions } from "./chat-actions.ts";
import type { ChatParts } from "./chat-parts.ts";
import type { Departure } from "./departure.ts";
import { pipedLines } from "./piped-lines.ts";
import { takeLine } from "./take-line.ts";

/** What comes from a pipe until it ends, or the chat leaves and lets go of it. */
async function* untilLeaving(stdin: AsyncIterable<Buffer>, departure: Departure): AsyncGenerator<Buffer> {
  try {
    yield* stdin;
  } catch (error) {
    if (!departure.isLeaving) throw error;
  }
}

/** Lines from a pipe: each one a turn, one after another. Answers the last exit code that was not 0. */
export async function chatByLines(parts: ChatParts): Promise<number> {
  const { io, conversation, departure } = parts;
  const actions = chatActions(parts);
  // A read of a pipe that is waited for has no other end.
  departure.onLeave(() => io.stdin.destroy());
  let code: number = exitCode.ok;
  for await (const line of pipedLines(untilLeaving(io.stdin, departure))) {
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
    if (departure.isLeaving || code === exitCode.storeUnusable) break;
  }
  return code;
}
