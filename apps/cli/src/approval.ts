import type { Approval, ApprovalRequest } from "@turnkeeper/agent-core";
import type { ApprovalPolicy } from "@turnkeeper/tools";
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

/** What decides on a call: the rules, the flag, and the person at the terminal. */
export interface ApprovalParts {
  readonly config: Config;
  readonly policy: ApprovalPolicy;
  readonly workspace: string;
  readonly yes?: boolean | undefined;
  readonly ask?: AskLine | undefined;
}

/**
 * Who may run calls that need approval: everybody, nobody, or whoever the person at the terminal lets. What a rule for
 * a tool or a pattern denies is denied to all of them.
 */
export function approvalOf({ config, policy, workspace, yes, ask }: ApprovalParts, screen: Screen): Approval {
  const { approval: rules } = config.tools;
  const isOneWord = typeof rules === "string";
  if ((yes && isOneWord) || rules === "allow") return "allow";
  if (rules === "deny" || (!yes && !ask)) return "deny";
  const always = new Set<string>();
  return async (request) => {
    const call = { name: request.name, input: request.input, workspace, needsApproval: true };
    const { decision, rule } = policy.decide(call);
    if (decision === "deny" && !(yes && rule === "*")) {
      screen.note(`  ${printable(request.name)} is denied by the rule ${printable(rule ?? "")}.`);
      return "deny";
    }
    if (yes || always.has(request.name)) return "allow";
    return (await asked(request, ask, always, screen)) ? "allow" : "deny";
  };
}

async function asked(
  request: ApprovalRequest,
  ask: AskLine | undefined,
  always: Set<string>,
  screen: Screen,
): Promise<boolean> {
  if (!ask) return false;
  screen.note(callText(request));
  for (;;) {
    const answer = (await ask(`  Allow? [y]es, [n]o, [a]lways ${printable(request.name)} `, request.signal))
      ?.trim()
      .toLowerCase();
    if (answer === undefined || answer === "n" || answer === "no") return false;
    if (answer === "y" || answer === "yes") return true;
    if (answer === "a" || answer === "always") {
      always.add(request.name);
      return true;
    }
  }
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
