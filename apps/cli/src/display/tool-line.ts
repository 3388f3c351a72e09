import { counted } from "./count-text.ts";
import { clipped } from "./style.ts";

type Json = unknown;

function shortValue(value: Json): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** What a call is about, on one line: its one argument, or all of them by name. */
export function callSummary(input: Json, width: number): string {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return clipped(shortValue(input), width);
  const entries = Object.entries(input);
  const [only] = entries;
  if (entries.length === 1 && only) return clipped(shortValue(only[1]), width);
  return clipped(entries.map(([name, value]) => `${name}=${shortValue(value)}`).join(" "), width);
}

/** What a result says, on one line: its first line that says something. */
function resultSummary(output: Json, width: number): string {
  const text = typeof output === "string" ? output : (JSON.stringify(output) ?? "");
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const more = lines.length > 1 ? ` (+${counted(lines.length - 1, "line")})` : "";
  return `${clipped(lines[0] ?? "", Math.max(10, width - more.length))}${more}`;
}

/** A call's result as a person takes it in: whether it went well, and what it says on one line. */
export interface ShownResult {
  readonly isGood: boolean;
  readonly summary: string;
}

export interface CallResult {
  readonly name: string;
  /** Whether the tool answered. */
  readonly ok: boolean;
  readonly output: Json;
}

/** How a command ended, as `shell` closes its answer, with the note that may stand behind it. */
const commandEnd = /(?:^|\n)\[(exit code \d+|ended by signal \w+)\](\n\[a background process [^\n]*\])?$/;

/**
 * `shell` answers whatever its command came to, and `delegate` whatever its subagent did: the model is to read it. A
 * person sees at the mark whether it is what was wanted.
 */
export function shownResult({ name, ok, output }: CallResult, width: number): ShownResult {
  const [, ended] = (name === "shell" && ok && typeof output === "string" ? commandEnd.exec(output) : null) ?? [];
  if (ended !== undefined && typeof output === "string") {
    const said = output.replace(commandEnd, "$2").trim();
    const isGood = ended === "exit code 0";
    if (isGood) return { isGood, summary: resultSummary(said === "" ? "(no output)" : said, width) };
    return { isGood, summary: `${ended}  ${resultSummary(said, width - ended.length - 2)}` };
  }
  const child = name === "delegate" && ok ? subagentResult(output) : undefined;
  if (child) return { isGood: child.outcome === "answered", summary: resultSummary(child.said, width) };
  return { isGood: ok, summary: resultSummary(output, width) };
}

function subagentResult(output: Json): { readonly outcome: string; readonly said: string } | undefined {
  let answer: unknown = output;
  try {
    if (typeof output === "string") answer = JSON.parse(output);
  } catch {
    return undefined;
  }
  if (typeof answer !== "object" || answer === null || !("outcome" in answer)) return undefined;
  const { outcome, answer: text, detail } = answer as Readonly<Record<string, unknown>>;
  if (typeof outcome !== "string") return undefined;
  const said = [text, detail].find((one): one is string => typeof one === "string" && one.trim() !== "") ?? "";
  return { outcome, said: outcome === "answered" ? said : `${outcome}: ${said}` };
}
