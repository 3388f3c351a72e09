import type { Approval, ApprovalRequest } from "@turnkeeper/agent-core";
import { createInterface } from "node:readline";
import type { CommandIo } from "./command-io.ts";
import type { Config } from "./config/config.ts";
import type { Screen } from "./display/screen.ts";
import { printable } from "./display/style.ts";

/** Asks one question; nothing where the person left it unanswered (Ctrl-D, or the turn was stopped meanwhile). */
export type AskLine = (question: string, signal: AbortSignal) => Promise<string | undefined>;

/** What is to be allowed, in full: a call that is cut off on the screen may hide what it does. */
function callText({ name, input }: ApprovalRequest): string {
  const fields =
    typeof input === "object" && input !== null && !Array.isArray(input)
      ? Object.entries(input)
      : [["input", input] as const];
  const lines = fields.map(([field, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return `    ${field}: ${printable(text).replaceAll("\n", "\n      ")}`;
  });
  return [`  ${printable(name)} asks to run:`, ...lines].join("\n");
}

/** Who may run tools that need approval: everybody, nobody, or whoever the person at the terminal lets. */
export function approvalOf(
  config: Config,
  options: { readonly yes?: boolean | undefined; readonly ask?: AskLine | undefined },
  screen: Screen,
): Approval {
  if (options.yes || config.tools.approval === "allow") return "allow";
  const { ask } = options;
  if (config.tools.approval === "deny" || !ask) return "deny";
  const always = new Set<string>();
  return async (request) => {
    if (always.has(request.name)) return "allow";
    screen.note(callText(request));
    for (;;) {
      const answer = (await ask(`  Allow? [y]es, [n]o, [a]lways ${printable(request.name)} `, request.signal))
        ?.trim()
        .toLowerCase();
      if (answer === undefined || answer === "n" || answer === "no") return "deny";
      if (answer === "y" || answer === "yes") return "allow";
      if (answer === "a" || answer === "always") {
        always.add(request.name);
        return "allow";
      }
    }
  };
}

/** Asks on a terminal that nobody else reads from; nothing where there is none. `onInterrupt` gets Ctrl-C. */
export function terminalAsker(io: CommandIo, onInterrupt: () => void): AskLine | undefined {
  if (!io.stdin.isTTY || !io.stderr.isTerminal) return undefined;
  return (question, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve(undefined);
      const reader = createInterface({ input: io.stdin, output: io.stderr.stream, terminal: io.stderr.canRedraw });
      const end = (answer: string | undefined): void => {
        signal.removeEventListener("abort", onAbort);
        reader.removeAllListeners("close");
        reader.close();
        resolve(answer);
      };
      const onAbort = (): void => {
        io.stderr.write("\n");
        end(undefined);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      // In raw mode Ctrl-C is a key, not a signal.
      reader.on("SIGINT", onInterrupt);
      reader.on("close", () => end(undefined));
      reader.question(question, end);
    });
}
