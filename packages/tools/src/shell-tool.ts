import type { ToolContext } from "@turnkeeper/agent-core";
import type { Host } from "@turnkeeper/kernel";
import { z } from "zod";
import { childEnvironment } from "./child-environment.ts";
import type { Environment } from "./child-environment.ts";
import { runCommand } from "./command.ts";
import type { CommandExit, CommandResult } from "./command.ts";
import { throwIfInterrupted, toolError } from "./errors.ts";
import { resolveOptions } from "./options.ts";
import { callMarkerName } from "./process-marker.ts";
import { stopSentence } from "./stop-receipt.ts";
import type { TextTool } from "./text-tool.ts";

export interface ShellToolOptions {
  /** The longest one command may run, and the default of `timeout_s`. Default 600,000: a full build or test run. */
  readonly timeoutMs?: number;
  /** Between TERM and KILL when a command is stopped. Default 2,000: a build tool removes its lock files. */
  readonly graceMs?: number;
  /** How long output is read on after the shell has exited. Default 250: a pipe that is not held open is empty by then. */
  readonly drainMs?: number;
  /** What is kept of the output, a quarter from its beginning, the rest from its end. Default 65,536. */
  readonly outputBytesMax?: number;
  /** Names of environment variables that commands get beside the built-in list (PATH, HOME, locale, …). Default none. */
  readonly passEnvironment?: readonly string[];
}

export interface ShellToolDeps {
  readonly host: Host;
  /** What commands get a part of: `process.env` of an app. */
  readonly environment: Environment;
}

export interface ShellInput {
  readonly command: string;
  readonly timeout_s?: number | undefined;
}

const longestTimeoutMs = 24 * 3_600_000;

const optionsSchema = z.strictObject({
  timeoutMs: z.number().positive().max(longestTimeoutMs).default(600_000),
  graceMs: z.number().min(0).max(60_000).default(2_000),
  drainMs: z.number().min(0).max(60_000).default(250),
  outputBytesMax: z.int().min(16).max(16_777_216).default(65_536),
  passEnvironment: z.array(z.string().min(1)).readonly().default([]),
});

// Beside its time limit a call takes the grace, the last rounds of KILL and the drain; then the turn may lose patience.
const marginMs = 5_000;

/**
 * The tool `shell`: runs a command line in the workspace, in a process session of its own, without keys in its
 * environment, and answers its output and how it ended.
 *
 * Ends what it started when `context.signal` aborts or its time is up: TERM, KILL after `graceMs` (at once on
 * `hardSignal`), daemonised descendants too where the platform has `/proc`. What a command that ended by itself left
 * in the background lives on until the turn's marker is swept. Rejects with `COMMAND_NOT_STARTED`,
 * `COMMAND_TIMED_OUT`, `CALL_INTERRUPTED`, the last two with `receipt` (a `KillReceipt`) in their context; a non-zero
 * exit is an answer, not an error.
 */
export function createShellTool(deps: ShellToolDeps, options?: ShellToolOptions): TextTool<ShellInput> {
  const settings = resolveOptions("createShellTool", optionsSchema, options);
  const longestS = settings.timeoutMs / 1_000;
  const timeoutMsOf = (input: ShellInput): number => (input.timeout_s ?? longestS) * 1_000;
  return Object.freeze<TextTool<ShellInput>>({
    name: "shell",
    description:
      "Runs a command line with bash in the workspace folder and answers its output (stdout and stderr together) and its exit code. " +
      "There is no terminal and no input. Long output is cut in the middle. Write to standard error with >&2, not to /dev/stderr. " +
      "A process that is to go on in the background must write to a file: command >file 2>&1 &. It ends with the turn.",
    input: z.strictObject({
      command: z.string().min(1).describe("The command line."),
      timeout_s: z
        .number()
        .positive()
        .max(longestS)
        .optional()
        .describe(`Seconds after which the command is ended. Default ${longestS}.`),
    }),
    needsApproval: true,
    concurrency: "exclusive",
    traits: { mutates: true, failsByDesign: true },
    boundMs: (input) => timeoutMsOf(input) + settings.graceMs + settings.drainMs + marginMs,
    async execute(input: ShellInput, context: ToolContext) {
      throwIfInterrupted(context.signal, "start the command");
      const marker = { ...context.processMarker, [callMarkerName]: deps.host.random.id() };
      const timeoutMs = timeoutMsOf(input);
      const result = await runCommand(deps, {
        ...settings,
        timeoutMs,
        command: input.command,
        folder: context.workspace,
        environment: childEnvironment(deps.environment, settings.passEnvironment, marker),
        marker,
        signal: context.signal,
        hardSignal: context.hardSignal,
        onOutput: () => context.progress("output"),
      });
      if (result.kind === "exited") return answerOf(result);
      const { receipt } = result;
      const ended = `${stopSentence(receipt.steps, receipt.supported)}\n${outputOf(result)}`;
      if (result.by === "timeout") {
        const message = `The command did not end within ${timeoutMs / 1_000} s. ${ended}`;
        throw toolError("COMMAND_TIMED_OUT", message, undefined, { receipt });
      }
      const message = `The command was stopped with the turn. ${ended}`;
      throw toolError("CALL_INTERRUPTED", message, context.signal.reason, { receipt });
    },
  });
}

// No duration in the answer: the same call with the same result must read the same, or a loop could not be seen.
function answerOf(result: Extract<CommandResult, { kind: "exited" }>): string {
  const notes = [`[${exitOf(result.exit)}]`];
  if (result.heldOpen) {
    notes.push("[a background process still holds the output open; what it writes from now on is lost]");
  }
  return [outputOf(result), ...notes].join("\n");
}

function exitOf({ code, signal }: CommandExit): string {
  return signal === null ? `exit code ${String(code)}` : `ended by signal ${signal}`;
}

function outputOf({ output }: CommandResult): string {
  return output === "" ? "(no output)" : output.replace(/\n$/, "");
}
