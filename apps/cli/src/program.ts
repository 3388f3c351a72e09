import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { oneLine } from "./one-line.ts";
import { complain } from "./command-io.ts";
import type { CommonFlags } from "./command-context.ts";
import type { CommandIo } from "./command-io.ts";
import { exitCode } from "./exit-code.ts";
import { busyPolicies } from "./turn-flags.ts";
import { versionText } from "./version.ts";

/** A command's work, loaded when the command runs: `--help` needs neither a database nor a model. */
type Work = (io: CommandIo) => Promise<number>;

function numberOf(expectation: string, isRight: (value: number) => boolean): (text: string) => number {
  return (text) => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (Number.isFinite(value) && isRight(value)) return value;
    throw new InvalidArgumentError(`Expected ${expectation}.`);
  };
}

const seconds = numberOf("a number of seconds of at least 0", (value) => value >= 0 && value <= 31_536_000);
const countOf = (most: number): ((text: string) => number) =>
  numberOf(`a whole number from 1 to ${most}`, (value) => Number.isInteger(value) && value >= 1 && value <= most);
const seq = numberOf("a whole number of at least 1", (value) => Number.isSafeInteger(value) && value >= 1);
const port = numberOf("a port from 0 to 65535", (value) => Number.isInteger(value) && value >= 0 && value <= 65_535);

const homeOption = (): Option =>
  new Option("--home <dir>", "home folder (default: $TURNKEEPER_HOME, else ~/.turnkeeper)");
const storeOption = (): Option =>
  new Option(
    "--store <path|url>",
    "the store's file, or a postgres:// URL (default: store.url of config.yaml, else state.db in the home)",
  );
const jsonOption = (what: string): Option => new Option("--json", what);
const sessionId = (): Argument => new Argument("<id>", "session id");

/** Builds the commands. `start` gets what the chosen command is to do. */
function buildProgram(start: (work: Work) => Promise<void>): Command {
  const program = new Command("turnkeeper")
    .description("Durable agent turns: run, watch and stop them, from any number of terminals.")
    .version(versionText(), "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .addOption(new Option("--debug", "print the stack of an internal error"))
    .addHelpText(
      "after",
      '\nExamples:\n  turnkeeper run "List the files here" --session first\n  turnkeeper chat\n  turnkeeper <command> --help',
    );

  const command = (parent: Command, usage: string, description: string, example: string): Command =>
    parent
      .command(usage)
      .description(description)
      .helpOption("-h, --help", "show help")
      .addOption(new Option("--debug", "print the stack of an internal error"))
      .addHelpText("after", `\nExample:\n  ${example}`);

  const turnOptions = (one: Command): Command =>
    one
      .addOption(new Option("--session <id>", "the session (default: a new one)"))
      .addOption(new Option("--model <provider/model>", "the model (default: model of config.yaml)"))
      .addOption(new Option("--on-busy <policy>", "when another turn runs on the session").choices(busyPolicies))
      .addOption(
        new Option(
          "--wait-timeout <seconds>",
          "how long to wait for a busy session (default: agent.turn_lease.wait_s)",
        ).argParser(seconds),
      )
      .addOption(new Option("--input-id <id>", "idempotency key of the (first) message: the same id runs once"))
      .addOption(new Option("--yes", "run tools that need approval without asking"))
      .addOption(homeOption())
      .addOption(storeOption());

  turnOptions(
    command(
      program,
      "run [message]",
      "run one turn; the message comes from stdin when it is left out",
      'turnkeeper run "List the files here" --session first',
    ),
  )
    .addOption(jsonOption("print the turn's events as JSON Lines"))
    .action((message, flags) => start(async (io) => (await import("./commands/run.ts")).run(io, message, flags)));

  turnOptions(
    command(
      program,
      "chat",
      "talk to a session; Ctrl-C stops the turn, /help lists the commands",
      "turnkeeper chat --session first",
    ),
  )
    .addOption(jsonOption("print the turns' events as JSON Lines"))
    .action((flags) => start(async (io) => (await import("./commands/chat.ts")).chat(io, flags)));

  addSessionCommands(command, program, start);
  addStoreCommands(command, program, start);
  addWatchCommands(command, program, start);
  addSetUpCommands(command, program, start);
  return program;
}

type MakeCommand = (parent: Command, usage: string, description: string, example: string) => Command;
type Start = (work: Work) => Promise<void>;

function addSessionCommands(command: MakeCommand, program: Command, start: Start): void {
  const sessions = command(program, "sessions", "look into the store", "turnkeeper sessions list");
  const sessionCommand = (usage: string, description: string, example: string): Command =>
    command(sessions, usage, description, example).addOption(homeOption()).addOption(storeOption());

  sessionCommand("list", "list sessions, the last changed first", "turnkeeper sessions list --limit 10")
    .addOption(new Option("--limit <count>", "how many").argParser(countOf(10_000)).default(50))
    .addOption(new Option("--cursor <cursor>", "where the page before ended (nextCursor of --json)"))
    .addOption(jsonOption("print one JSON object"))
    .action((flags) => start(async (io) => (await import("./commands/list-sessions.ts")).listSessions(io, flags)));
  sessionCommand(
    "show",
    "show a session's transcript and the fate of its inputs",
    "turnkeeper sessions show first --last 20",
  )
    .addArgument(sessionId())
    .addOption(new Option("--last <count>", "the newest entries alone").argParser(countOf(10_000)))
    .addOption(new Option("--before <seq>", "entries before this one (nextBefore of --json)").argParser(seq))
    .addOption(jsonOption("print one JSON object"))
    .action((id, flags) =>
      start(async (io) => (await import("./commands/show-session.ts")).showSession(io, id, flags)),
    );
  sessionCommand(
    "search",
    "find entries that have every word of a text in them, newest first",
    'turnkeeper sessions search "README" --session first',
  )
    .argument("<text>", "what to look for")
    .addOption(new Option("--session <id>", "in this session only"))
    .addOption(new Option("--limit <count>", "how many").argParser(countOf(1000)).default(20))
    .addOption(new Option("--cursor <cursor>", "where the page before ended (nextCursor of --json)"))
    .addOption(jsonOption("print one JSON object"))
    .action((text, flags) =>
      start(async (io) => (await import("./commands/search-sessions.ts")).searchSessions(io, text, flags)),
    );
  sessionCommand(
    "export",
    "write everything of a session as JSON Lines",
    "turnkeeper sessions export first > first.jsonl",
  )
    .addArgument(sessionId())
    .addOption(jsonOption("JSON Lines, which is what export writes anyway"))
    .action((id, flags) =>
      start(async (io) => (await import("./commands/export-session.ts")).exportSession(io, id, flags)),
    );
  sessionCommand(
    "import",
    "make a session of what export wrote, all of it or nothing",
    "turnkeeper sessions import first.jsonl",
  )
    .addArgument(new Argument("<file>", "the exported file; - reads stdin"))
    .addOption(new Option("--as <id>", "the session's new id (default: the one it had)"))
    .addOption(jsonOption("print one JSON object"))
    .action((file, flags) =>
      start(async (io) => (await import("./commands/import-session.ts")).importSession(io, file, flags)),
    );
  sessionCommand("delete", "delete a session; asks first on a terminal", "turnkeeper sessions delete first --yes")
    .addArgument(sessionId())
    .addOption(new Option("--yes", "do not ask"))
    .addOption(jsonOption("print one JSON object"))
    .action((id, flags) =>
      start(async (io) => (await import("./commands/delete-session.ts")).deleteSession(io, id, flags)),
    );
  sessionCommand("verify", "prove the store's invariants on one session, or on all", "turnkeeper sessions verify first")
    .addArgument(new Argument("[id]", "session id (default: every session)"))
    .addOption(jsonOption("print one JSON object"))
    .action((id, flags) => start(async (io) => (await import("./commands/verify.ts")).verifySessions(io, id, flags)));
  sessionCommand(
    "repair",
    "mend what is derived, and settle what was left by processes that are gone, in one session or in all",
    "turnkeeper sessions repair first",
  )
    .addArgument(new Argument("[id]", "session id (default: every session)"))
    .addOption(new Option("--dry-run", "say what would be mended and what would be left, and change nothing"))
    .addOption(jsonOption("print one JSON object"))
    .action((id, flags) => start(async (io) => (await import("./commands/repair.ts")).repairSessions(io, id, flags)));
  sessionCommand(
    "recover",
    "make a new store of every row of a damaged one that is intact; the damaged one is only read",
    "turnkeeper sessions recover --output recovered.db",
  )
    .addOption(new Option("--source <path>", "the damaged store's file (default: the store)"))
    .addOption(new Option("--inspect-only", "say what could be recovered, and make nothing"))
    .addOption(new Option("--output <path>", "the new store's file, which must not exist"))
    .addOption(jsonOption("print the report as one JSON object"))
    .action((flags) => start(async (io) => (await import("./commands/recover.ts")).recover(io, flags)));
}

function addStoreCommands(command: MakeCommand, program: Command, start: Start): void {
  const store = command(program, "store", "move whole stores", "turnkeeper store copy old.db new.db");
  command(
    store,
    "copy",
    "copy every session into another store, of whatever kind; repeat it to go on with one that was broken off",
    "turnkeeper store copy state.db postgres://me@server/turns",
  )
    .addArgument(new Argument("<from>", "the store's file, or a postgres:// URL; it is only read"))
    .addArgument(new Argument("<to>", "the store to copy into, which is made where it is missing"))
    .addOption(jsonOption("print one JSON object"))
    .addOption(homeOption())
    .action((from, to, flags) =>
      start(async (io) => (await import("./commands/copy-store.ts")).copyStores(io, from, to, flags)),
    );
}

function addWatchCommands(command: MakeCommand, program: Command, start: Start): void {
  command(program, "why", "say who holds a session, what waits, and what happens next", "turnkeeper why first")
    .addArgument(sessionId())
    .addOption(jsonOption("print one JSON object"))
    .addOption(homeOption())
    .addOption(storeOption())
    .action((id, flags) => start(async (io) => (await import("./commands/why.ts")).why(io, id, flags)));
  command(
    program,
    "stop",
    "ask a session's running turn to stop, in whatever process it runs",
    "turnkeeper stop first --hard",
  )
    .addArgument(sessionId())
    .addOption(new Option("--hard", "at once, without letting a tool finish"))
    .addOption(jsonOption("print one JSON object"))
    .addOption(homeOption())
    .addOption(storeOption())
    .action((id, flags) => start(async (io) => (await import("./commands/stop.ts")).stop(io, id, flags)));
  command(
    program,
    "approve",
    "answer a call that a turn waits for, whatever process asked",
    "turnkeeper approve first call-1 allow",
  )
    .addArgument(sessionId())
    .addArgument(new Argument("<call>", "the call's id, as why shows it"))
    .addArgument(new Argument("<decision>", "allow or deny").choices(["allow", "deny"]))
    .addOption(new Option("--turn <id>", "only a call of this turn"))
    .addOption(jsonOption("print one JSON object"))
    .addOption(homeOption())
    .addOption(storeOption())
    .action((id, call, decision, flags) =>
      start(async (io) => (await import("./commands/approve.ts")).approve(io, id, call, decision, flags)),
    );
  command(program, "top", "show the turns that run, refreshed on a terminal", "turnkeeper top")
    .addOption(jsonOption("print one line each, once"))
    .addOption(homeOption())
    .addOption(storeOption())
    .action((flags) => start(async (io) => (await import("./commands/top.ts")).top(io, flags)));
}

function addSetUpCommands(command: MakeCommand, program: Command, start: Start): void {
  command(
    program,
    "doctor",
    "check store, file system, permissions, settings and keys, with a next step for each finding",
    "turnkeeper doctor",
  )
    .addOption(jsonOption("print one JSON object"))
    .addOption(homeOption())
    .addOption(storeOption())
    .action((flags) => start(async (io) => (await import("./commands/doctor.ts")).doctor(io, flags)));

  const config = command(program, "config", "look at the settings", "turnkeeper config show");
  const configCommand = (usage: string, description: string, example: string): Command =>
    command(config, usage, description, example).addOption(homeOption());
  configCommand("show", "print every setting in force and where it came from", "turnkeeper config show")
    .addOption(storeOption())
    .addOption(jsonOption("print one JSON object"))
    .action((flags) => start(async (io) => (await import("./commands/config.ts")).showConfig(io, flags)));
  configCommand("check", "check config.yaml; exit 2 when something is wrong in it", "turnkeeper config check")
    .addOption(jsonOption("print one JSON object"))
    .action((flags) => start(async (io) => (await import("./commands/config.ts")).checkConfigFile(io, flags)));
  configCommand(
    "schema",
    "print the JSON Schema of config.yaml, for editors",
    "turnkeeper config schema > config.schema.json",
  ).action(() => start(async (io) => (await import("./commands/config.ts")).printSchema(io)));
  configCommand("path", "print where config.yaml is", "turnkeeper config path").action((flags) =>
    start(async (io) => (await import("./commands/config.ts")).printPath(io, flags)),
  );

  command(program, "gateway", "serve the store's sessions over HTTP", "turnkeeper gateway --port 8377")
    .addOption(new Option("--host <address>", "where to listen (default: gateway.host of config.yaml)"))
    .addOption(new Option("--port <port>", "0 takes a free one (default: gateway.port of config.yaml)").argParser(port))
    .addOption(new Option("--model <provider/model>", "the model (default: model of config.yaml)"))
    .addOption(homeOption())
    .addOption(storeOption())
    .action((flags) => start(async (io) => (await import("./commands/gateway.ts")).gateway(io, flags)));
}

/** Subcommands take these from their parents, which commander does not do by itself. */
function shapeMessages(one: Command, io: CommandIo): void {
  one.exitOverride().showSuggestionAfterError(true).allowExcessArguments(false);
  one.configureOutput({
    writeOut: (text) => io.stdout.write(text),
    writeErr: (text) => io.stderr.write(text),
    outputError: (text) =>
      complain(io, `${oneLine(text.replace(/^error: /, "")).replace(/\w'?$/, "$&.")} See ${pathOf(one)} --help.`),
    getOutHelpWidth: () => io.stdout.columns,
    getErrHelpWidth: () => io.stderr.columns,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
  });
  for (const inner of one.commands) shapeMessages(inner, io);
}

function pathOf(one: Command): string {
  return one.parent ? `${pathOf(one.parent)} ${one.name()}` : one.name();
}

/** Runs one command line. Answers the exit code; rejects with what a command failed with. `onFlags`: before it starts. */
export async function runCommandLine(
  argv: readonly string[],
  io: CommandIo,
  onFlags: (flags: CommonFlags) => void,
): Promise<number> {
  let code: number = exitCode.ok;
  const program = buildProgram(async (work) => {
    code = await work(io);
  });
  shapeMessages(program, io);
  program.hook("preAction", async (_program, command) => {
    // A call to run has its last event, however early it is stopped; whatever else is just being loaded, ends.
    if (command.name() !== "run") await io.releaseSignals();
    onFlags(command.opts<CommonFlags>());
  });
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version were asked for; everything else that commander refuses is a mistake of the command line.
    return error.exitCode === 0 ? exitCode.ok : exitCode.usage;
  }
  return code;
}
