import { existsSync } from "node:fs";
import path from "node:path";
import type { RecoveryGoal, RecoveryProgress, RecoveryReport } from "@turnkeeper/state-store-sqlite";
import { cliError } from "../cli-error.ts";
import { readContext } from "../command-context.ts";
import type { CommonFlags } from "../command-context.ts";
import { complain } from "../command-io.ts";
import type { CommandIo } from "../command-io.ts";
import { progressLine, recoveryLines } from "../display/recovery-text.ts";
import { exitCode } from "../exit-code.ts";
import { liveSockets } from "../live-sockets.ts";
import { freeFolder } from "../next-step.ts";
import { absolutePath } from "../places.ts";
import { shellWord } from "../shell-word.ts";
import { socketFolderOf } from "../store-location.ts";
import { jsonLine } from "../json-line.ts";

interface RecoverFlags extends CommonFlags {
  readonly source?: string;
  readonly inspectOnly?: boolean;
  readonly output?: string;
}

function goalOf(io: CommandIo, { inspectOnly, output }: RecoverFlags): RecoveryGoal {
  if (output === "") throw cliError("USAGE", "--output needs a path, got an empty value.");
  if (inspectOnly && output === undefined) return { inspectOnly: true };
  if (output !== undefined && !inspectOnly) return { output: absolutePath(io, output) };
  throw cliError(
    "USAGE",
    "sessions recover needs either --inspect-only, to see what can be recovered, or --output PATH, to recover it.",
  );
}

/** Processes of other pid namespaces show themselves by their sockets alone. */
async function refuseLive(source: string): Promise<void> {
  const [live] = await liveSockets(socketFolderOf(source));
  if (live === undefined) return;
  throw cliError(
    "STORE_HELD",
    `Could not recover the store ${source}: a process that uses it answers at ${live}. Nothing was touched; end the gateway and every other turnkeeper on this store, and repeat.`,
    undefined,
    { path: source },
  );
}

/** What to type next. The old files move together: a -wal left behind would be replayed onto the new store, and a spool too. */
function nextCommands({ source, output }: RecoveryReport): readonly string[] {
  const from = shellWord(source.path);
  if (output === undefined)
    return [`turnkeeper sessions recover --source ${from} --output ${shellWord(`${source.path}.recovered`)}`];
  const folder = shellWord(freeFolder(source.path, "damaged"));
  const files = ["", "-wal", "-shm", "-journal", "-spool"]
    .map((suffix) => `${source.path}${suffix}`)
    .filter((file) => existsSync(file));
  const spool = `${output}-spool`;
  const broughtSpool = existsSync(spool) ? ` && mv ${shellWord(spool)} ${shellWord(`${source.path}-spool`)}` : "";
  // What the verification lays beside it is made anew beside the store.
  const besides = ["-mark", "-reserve"].map((suffix) => shellWord(`${output}${suffix}`)).join(" ");
  return [
    `turnkeeper sessions verify --store ${shellWord(output)}`,
    `mkdir ${folder} && mv ${files.map(shellWord).join(" ")} ${folder} && mv ${shellWord(output)} ${from}${broughtSpool} && rm -f ${besides}`,
  ];
}

/** A line for each stage, and for each tenth of it. */
function progressTeller(io: CommandIo): (progress: RecoveryProgress) => void {
  let last = "";
  return (progress) => {
    const mark = `${progress.stage} ${Math.floor((10 * progress.doneCount) / Math.max(1, progress.totalCount))}`;
    if (mark !== last) io.stderr.line(progressLine(progress));
    last = mark;
  };
}

/** `turnkeeper sessions recover`: exit 0 when nothing is lost, 1 when the report names what is. */
export async function recover(io: CommandIo, flags: RecoverFlags): Promise<number> {
  const goal = goalOf(io, flags);
  if (flags.source === "") throw cliError("USAGE", "--source needs a path, got an empty value.");
  const source =
    flags.source === undefined ? (await readContext(io, flags)).store.path : absolutePath(io, flags.source);
  await refuseLive(source);
  const { recoverStore } = await import("@turnkeeper/state-store-sqlite");
  const controller = new AbortController();
  const ways = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) =>
    io.onSignal(signal, () => controller.abort()),
  );
  try {
    const report = await recoverStore(source, goal, { signal: controller.signal, onProgress: progressTeller(io) });
    const next = nextCommands(report);
    if (flags.json) io.stdout.line(jsonLine({ ...report, next }));
    else {
      for (const line of recoveryLines(report)) io.stdout.line(line);
      if (report.output !== undefined) io.stdout.line(`recovered into ${path.resolve(report.output)}`);
      for (const command of next) io.stdout.line(`next: ${command}`);
    }
    return report.isComplete ? exitCode.ok : exitCode.failed;
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    complain(io, "Stopped; nothing was made.");
    return exitCode.interrupted;
  } finally {
    for (const leave of ways) leave();
  }
}
