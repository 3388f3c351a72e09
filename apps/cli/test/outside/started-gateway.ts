import { startCli } from "./built-cli.ts";
import type { CliOptions, RunningCli } from "./built-cli.ts";

/** A gateway of the built CLI in a process of its own, on a free port. */
export interface Gateway {
  readonly process: RunningCli;
  readonly url: string;
}

export async function startGateway(options: Pick<CliOptions, "home" | "env">): Promise<Gateway> {
  const process = startCli(["gateway", "--port", "0"], options);
  await process.sees(/Listening on (\S+)/);
  return { process, url: /Listening on (\S+)/.exec(process.stdout)?.[1] ?? "" };
}
