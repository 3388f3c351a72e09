import { durationText } from "../time-text.ts";
import { visibleText } from "../visible-text.ts";
import type { CallBlock, CallState } from "../transcript-blocks.ts";
import { make, setAttribute, setText } from "./element.ts";
import type { View } from "./element.ts";

const stateTexts: Readonly<Record<CallState, string>> = {
  running: "running",
  asks: "needs approval",
  "awaits-result": "waits for its client's result",
  allowed: "allowed; others are asked about",
  ok: "done",
  error: "failed",
  denied: "denied",
  interrupted: "interrupted",
  unknown: "outcome unknown",
};

/** Long results are in the store whole; the page shows as much as anybody reads. */
const shownCharactersMax = 20_000;

function wholeText(value: unknown, charactersMax = shownCharactersMax): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? "");
  if (text.length <= charactersMax) return visibleText(text);
  return `${visibleText(text.slice(0, charactersMax))}\n… ${text.length - charactersMax} more characters`;
}

/** What a call is about, in one line: its command, its path, else all of its input. */
export function callSummary(input: unknown): string {
  const fields = (typeof input === "object" ? input : undefined) as
    | Readonly<Record<string, unknown>>
    | null
    | undefined;
  for (const name of ["command", "path", "url", "query", "pattern", "task", "prompt"]) {
    const value = fields?.[name];
    if (typeof value === "string") return value.split("\n", 1)[0] ?? "";
  }
  const whole = typeof input === "string" ? input : (JSON.stringify(input) ?? "");
  return whole === "{}" ? "" : whole.slice(0, 200);
}

export type AnswerCall = (callId: string, decision: "allow" | "deny") => void;

/** A tool call: its name and what it is about, and behind that all of its input and output. */
export function callCard(answer: AnswerCall): View<CallBlock> {
  const dot = make("span", { class: "dot", "aria-hidden": "true" });
  const [name, about, state] = [
    make("span", { class: "call-name" }),
    make("span", { class: "call-about" }),
    make("span", { class: "call-state" }),
  ];
  const [input, output] = [make("pre", { tabindex: 0 }), make("pre", { tabindex: 0 })];
  const outputLabel = make("p", { class: "label" }, "Output");
  const note = make("p", { class: "call-note" });
  const details = make(
    "details",
    {},
    make("summary", {}, dot, name, about, state),
    make("div", { class: "call-body" }, make("p", { class: "label" }, "Input"), input, outputLabel, output, note),
  );
  let callId = "";
  const button = (decision: "allow" | "deny", label: string, className: string): HTMLButtonElement =>
    make(
      "button",
      { type: "button", class: className, "data-decision": decision, on: { click: () => answer(callId, decision) } },
      label,
    );
  const asks = make(
    "div",
    { class: "call-asks", role: "group" },
    make("p", {}, "This call waits for you. Nothing runs until it is answered."),
    button("allow", "Allow", "primary"),
    button("deny", "Deny", "quiet danger"),
  );
  const node = make("div", { class: "call" }, details, asks);
  let shownState: CallState | undefined;
  return {
    node,
    show(block) {
      ({ callId } = block);
      const { isArchived = false, isLate = false } = block;
      setAttribute(node, "data-state", block.state);
      setAttribute(node, "data-archived", isArchived);
      setText(name, visibleText(block.name));
      setText(about, visibleText(callSummary(block.input)));
      const took = block.durationMs === undefined ? "" : ` · ${durationText(block.durationMs)}`;
      setText(state, `${isLate ? "late: " : ""}${stateTexts[block.state]}${took}`);
      // Whoever decides sees all of it, however long it is.
      setText(input, wholeText(block.input, block.state === "asks" ? Number.POSITIVE_INFINITY : undefined));
      setText(output, block.output === undefined ? "" : wholeText(block.output));
      outputLabel.hidden = output.hidden = block.output === undefined || output.textContent === "";
      setText(note, block.note ?? "");
      note.hidden = block.note === undefined;
      asks.hidden = block.state !== "asks";
      setAttribute(asks, "aria-label", `Approval of ${block.name}`);
      // Whoever is asked sees what is asked.
      if (block.state === "asks" && shownState !== "asks") details.open = true;
      shownState = block.state;
    },
  };
}
