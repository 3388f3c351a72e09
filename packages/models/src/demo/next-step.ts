import type { Conversation, ToolOutcome } from "./conversation.ts";
import { longestFile } from "./longest-file.ts";
import { listed } from "./listing.ts";
import { recall } from "./recall.ts";
import { answer, shortened } from "./step.ts";
import type { Step, ToolRequest } from "./step.ts";
import { taskOf } from "./task.ts";

const abilities: readonly string[] = [
  '"List the files in packages and tell me which README is longest"',
  '"List the files in FOLDER"',
  '"Read FILE"',
  '"Write TEXT to FILE"',
  '"Run COMMAND"',
  '"Sleep SECONDS"',
  '"What did I ask before?"',
];

/** One call, and then what its result means. */
function single(
  outcome: ToolOutcome | undefined,
  says: string,
  call: ToolRequest,
  told: (text: string) => string,
): Step {
  if (!outcome) return { kind: "call", says, calls: [call] };
  if (!outcome.isOk) return answer(`The tool ${call.tool} failed: ${shortened(outcome.text)}`);
  return answer(told(outcome.text));
}

/** Decides from the conversation alone; asking twice with the same one gives the same step. */
export function nextStep(conversation: Conversation, offered: ReadonlySet<string>): Step {
  const { request, outcomes } = conversation;
  const task = taskOf(request);
  const needed = {
    list: "list_files",
    longest: "list_files",
    read: "read_file",
    write: "write_file",
    run: "shell",
    recall: undefined,
    other: undefined,
  }[task.kind];
  if (needed !== undefined && !offered.has(needed))
    return answer(`For this I would call the tool ${needed}, and this session does not offer it.`);
  const outcome = outcomes.at(-1);
  switch (task.kind) {
    case "list":
      return single(
        outcome,
        `I look into ${task.folder}.`,
        { tool: "list_files", input: { path: task.folder } },
        (text) => listed(task.folder, text),
      );
    case "longest":
      return longestFile(task, outcomes, offered);
    case "read":
      return single(
        outcome,
        `I read ${task.path}.`,
        { tool: "read_file", input: { path: task.path } },
        (text) => `${task.path} says:\n\n${shortened(text)}`,
      );
    case "write":
      return single(
        outcome,
        `I write ${task.path}.`,
        { tool: "write_file", input: { path: task.path, content: task.content } },
        (text) => `Done. ${shortened(text)}`,
      );
    case "run":
      return single(
        outcome,
        "I run it.",
        { tool: "shell", input: { command: task.command } },
        (text) => `The command \`${task.command}\` answered:\n\n${shortened(text)}`,
      );
    case "recall":
      return answer(recall(conversation.history));
    default:
      return answer(
        `I read: "${request.length > 500 ? `${request.slice(0, 500)}…` : request}". That is none of the sentences I know. Try one of these:\n${abilities.map((line) => `- ${line}`).join("\n")}`,
      );
  }
}
