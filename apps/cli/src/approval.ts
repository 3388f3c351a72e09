import { messageOf } from "@turnkeeper/kernel";
import type { Agent, Approval, ApprovalPolicy as AgentPolicy, TurnEvent } from "@turnkeeper/agent-core";
import type { ApprovalPolicy } from "@turnkeeper/tools";
import { createInterface } from "node:readline";
import type { CommandIo } from "./command-io.ts";
import type { Config } from "./config/config.ts";
import { callLines } from "./display/approval-text.ts";
import type { Screen } from "./display/screen.ts";
import { printable } from "./display/style.ts";
import type { TurnView } from "./display/turn-view.ts";

/** Asks one question; nothing where the person left it unanswered (Ctrl-D), or it is moot. */
export type AskLine = (question: string, signal: AbortSignal) => Promise<string | undefined>;

type Question = Extract<TurnEvent, { type: "approval.requested" }>;

/** What decides on a call before anybody is asked. */
export interface PolicyParts {
  readonly config: Config;
  readonly policy: ApprovalPolicy;
  readonly workspace: string;
  readonly yes?: boolean | undefined;
  /** There may be rules that could not be read: then `--yes` allows nothing. */
  readonly hasUnreadRules?: boolean | undefined;
  /** Told of what a rule denies. */
  readonly note: (text: string) => void;
}

/**
 * The rules as an agent asks them. What a rule for a tool or a pattern denies is denied to everybody; what the general
 * rule denies, `--yes` allows.
 */
export function policyOf({ config, policy, workspace, yes, hasUnreadRules, note }: PolicyParts): AgentPolicy {
  const isOneWord = typeof config.tools.approval === "string";
  return (call) => {
    const { decision, rule } = policy.decide({ ...call, workspace });
    if (decision === "ask" && yes && hasUnreadRules) {
      note(`  ${printable(call.name)} is denied: config.yaml cannot be read, and may forbid it.`);
      return "deny";
    }
    if (decision !== "deny") return decision;
    if (yes && (isOneWord || rule === "*")) return "allow";
    if (!isOneWord) note(`  ${printable(call.name)} is denied by the rule ${printable(rule ?? "")}.`);
    return "deny";
  };
}

/** What becomes of the calls that ask: `--yes` runs them, a person is asked, and where there is none they are denied. */
export function approvalOf({ yes, ask }: { readonly yes?: boolean | undefined; readonly ask?: unknown }): Approval {
  return yes ? "allow" : ask ? "ask" : "deny";
}

export interface QuestionsParts {
  readonly screen: Screen;
  readonly ask: AskLine;
  /** The agent whose turns ask. */
  readonly agent: () => Pick<Agent, "answer">;
  /** The person left without an answer: the turn is to wait for one from elsewhere, without this process. */
  readonly leave: () => void;
}

/**
 * Puts what the shown turns ask to the person at the terminal, one question after another, and stores the answers: the
 * way of every other process. A question that was answered elsewhere, or whose turn was stopped, is moot.
 */
export class Questions {
  readonly #parts: QuestionsParts;
  readonly #always = new Set<string>();
  #open: Question[] = [];
  #moot = new AbortController();
  #isAsking = false;

  constructor(parts: QuestionsParts) {
    this.#parts = parts;
  }

  /** A view that asks too. */
  over(view: TurnView): TurnView {
    return {
      show: (event) => {
        view.show(event);
        this.#see(event);
      },
      ready: () => view.ready(),
    };
  }

  #see(event: TurnEvent): void {
    if (event.type === "approval.requested") {
      // Another program runs it, and sends the result: there is nothing to decide on.
      if (event.awaits === "result") return;
      this.#open.push(event);
      if (!this.#isAsking) void this.#askAll();
    } else if (event.type === "turn.started" || event.type === "turn.finished") {
      this.#open = [];
      this.#moot.abort();
      this.#moot = new AbortController();
    }
  }

  async #askAll(): Promise<void> {
    const { screen } = this.#parts;
    this.#isAsking = true;
    try {
      for (let question = this.#open.shift(); question; question = this.#open.shift()) await this.#settle(question);
    } catch (error) {
      screen.note(`turnkeeper: ${messageOf(error)}`);
    } finally {
      this.#isAsking = false;
    }
  }

  async #settle(question: Question): Promise<void> {
    const { agent, screen } = this.#parts;
    const { signal } = this.#moot;
    const decision = this.#always.has(question.name) ? "allow" : await this.#asked(question, signal);
    if (signal.aborted) return;
    if (decision === undefined) {
      this.#open = [];
      return this.#parts.leave();
    }
    const { callId, childSessionId, sessionId } = question;
    const turnId = childSessionId === undefined ? question.turnId : question.childTurnId;
    const by = `the person at pid ${process.pid}`;
    const outcome = await agent().answer(childSessionId ?? sessionId, callId, {
      decision,
      by,
      ...(turnId === undefined ? {} : { turnId }),
    });
    if (outcome.kind !== "already-answered") return;
    const { answer } = outcome;
    screen.note(`  It had been answered already: ${answer.decision}, by ${printable(answer.by)}.`);
  }

  async #asked(question: Question, signal: AbortSignal): Promise<"allow" | "deny" | undefined> {
    const { ask, screen } = this.#parts;
    for (const line of callLines(question, screen.noteStyle)) screen.note(line);
    for (;;) {
      const answer = (await ask(`  Allow? [y]es, [n]o, [a]lways ${printable(question.name)} `, signal))
        ?.trim()
        .toLowerCase();
      if (answer === undefined) return undefined;
      if (answer === "n" || answer === "no") return "deny";
      if (answer === "y" || answer === "yes") return "allow";
      if (answer === "a" || answer === "always") {
        this.#always.add(question.name);
        return "allow";
      }
    }
  }
}

/** Asks on a terminal that nobody else reads from; nothing where there is none. `onInterrupt` gets Ctrl-C. */
export function terminalAsker(io: CommandIo, onInterrupt: () => void, onHangUp: () => void): AskLine | undefined {
  if (!io.stdin.isTTY || !io.stderr.isTerminal) return undefined;
  // A terminal that is gone reads as an error, which may come before its signal.
  io.stdin.on("error", onHangUp);
  return (question, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve(undefined);
      const reader = createInterface({ input: io.stdin, output: io.stderr.stream, terminal: io.stderr.canRedraw });
      const end = (answer: string | undefined): void => {
        signal.removeEventListener("abort", leave);
        reader.removeAllListeners("close");
        reader.close();
        resolve(answer);
      };
      const leave = (): void => {
        io.stderr.write("\n");
        end(undefined);
      };
      signal.addEventListener("abort", leave, { once: true });
      // In raw mode Ctrl-C is a key, not a signal.
      reader.on("SIGINT", onInterrupt);
      reader.on("error", leave);
      reader.on("close", leave);
      reader.question(question, end);
    });
}
