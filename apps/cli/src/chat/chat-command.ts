import type { Conversation } from "./conversation.ts";

/** What the slash commands act on. */
export interface ChatActions {
  readonly conversation: Conversation;
  say(line: string): void;
  /** Leaves once nothing runs any more. */
  leave(): void;
  changeModel(name: string): Promise<void>;
  describeModel(): string;
  resume(sessionId: string): Promise<void>;
  listSessions(): Promise<void>;
  startNew(): void;
  why(): Promise<void>;
  context(): Promise<void>;
}

interface ChatCommand {
  readonly name: string;
  readonly argument?: string;
  readonly help: string;
  run(actions: ChatActions, argument: string): void | Promise<void>;
}

/** What changes the session or its model waits until nothing runs: an answer must not land in another conversation. */
function whenIdle(work: (actions: ChatActions, argument: string) => void | Promise<void>): ChatCommand["run"] {
  return (actions, argument) => {
    if (!actions.conversation.isRunning) return work(actions, argument);
    actions.say("A turn is running; wait for it, or stop it with /stop.");
    return undefined;
  };
}

const commands: readonly ChatCommand[] = [
  { name: "help", help: "list these commands", run: (actions) => help(actions) },
  { name: "new", help: "start a new session", run: whenIdle((actions) => actions.startNew()) },
  {
    name: "resume",
    argument: "[ID]",
    help: "list the last sessions, or go on with one",
    run: (actions, id) => {
      if (id === "") return actions.listSessions();
      return whenIdle((one, chosen) => one.resume(chosen))(actions, id);
    },
  },
  {
    name: "model",
    argument: "[PROVIDER/MODEL]",
    help: "say which model answers, or choose another",
    run: (actions, name) => {
      if (name === "") return actions.say(actions.describeModel());
      return whenIdle((one, chosen) => one.changeModel(chosen))(actions, name);
    },
  },
  {
    name: "stop",
    argument: "[hard]",
    help: "stop the running turn, or end it at once (Ctrl-C does too, twice at once)",
    run: (actions, how) => stop(actions, how),
  },
  {
    name: "steer",
    argument: "TEXT",
    help: "give the running turn a message at its next step (plain text does too)",
    run: (actions, text) =>
      text === "" ? actions.say("/steer needs a text.") : actions.conversation.send(text, "steer"),
  },
  { name: "why", help: "say who holds the session and what happens next", run: (actions) => actions.why() },
  {
    name: "context",
    help: "say how full the model's context is, and what happens next",
    run: (actions) => actions.context(),
  },
  {
    name: "compact",
    help: "summarise the conversation now; everything stays readable",
    run: whenIdle((actions) => actions.conversation.compact()),
  },
  { name: "exit", help: "leave, once the running turn has ended", run: (actions) => actions.leave() },
];

/** What a line that is a command begins with. */
export const commandWords: readonly string[] = commands.map(
  ({ name, argument }) => `/${name}${argument === undefined ? "" : " "}`,
);

function help(actions: ChatActions): void {
  const usages = commands.map(
    ({ name, argument, help: text }) => [`/${name}${argument ? ` ${argument}` : ""}`, text] as const,
  );
  const width = Math.max(...usages.map(([usage]) => usage.length));
  for (const [usage, text] of usages) actions.say(`${usage.padEnd(width)}  ${text}`);
  actions.say("Anything else is a message; one that begins with a slash is written with two.");
  actions.say("While a turn runs, what you type steers it; its output waits as long as there is text on your line.");
}

async function stop(actions: ChatActions, how: string): Promise<void> {
  if (how !== "" && how !== "hard") return actions.say("/stop takes nothing, or the word hard.");
  const by = `/stop, pid ${process.pid}`;
  const hard = how === "hard";
  const { conversation } = actions;
  if (conversation.stop({ hard, by })) return undefined;
  const result = await conversation.seated.agent.stop(conversation.sessionId, { by, hard });
  return actions.say(
    result.kind === "requested" ? `Asked pid ${result.turn.holder.pid} to stop.` : "Nothing runs on this session.",
  );
}

/** Whether a line is a command; `//…` is a message that begins with a slash. */
export function isChatCommand(line: string): boolean {
  return line.startsWith("/") && !line.startsWith("//");
}

/** Runs a line that is a command. Rejects with what the command failed with. */
export async function runChatCommand(line: string, actions: ChatActions): Promise<void> {
  const [, name = "", argument = ""] = /^\/(\S*)\s*([^]*?)\s*$/.exec(line) ?? [];
  const wanted = name === "quit" ? "exit" : name;
  const command = commands.find((one) => one.name === wanted);
  if (!command) return actions.say(`There is no command /${name}; /help lists them.`);
  await command.run(actions, argument);
}
