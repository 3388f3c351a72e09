import { CodedError } from "@turnkeeper/kernel";
import { failureLine } from "../cli-error.ts";
import { printable } from "../display/style.ts";
import { exitCode } from "../exit-code.ts";
import { exitCodeOfError } from "../failure-code.ts";
import { isChatCommand, runChatCommand } from "./chat-command.ts";
import type { ChatActions } from "./chat-command.ts";
import type { ChatParts } from "./chat-parts.ts";

/** Takes one line of a chat: a command or a message. Answers the exit code of a line that could not be taken. */
export async function takeLine(line: string, parts: ChatParts, actions: ChatActions): Promise<number> {
  if (line.trim() === "") return exitCode.ok;
  try {
    if (isChatCommand(line)) await runChatCommand(line, actions);
    else parts.conversation.send(line.replace(/^\/\//, "/"));
    return exitCode.ok;
  } catch (error) {
    // A mistake, or a store that is busy, does not end the conversation; a defect does.
    if (!CodedError.is(error)) throw error;
    parts.screen.tell(`turnkeeper: ${printable(failureLine(error))}`);
    return exitCodeOfError(error);
  }
}
