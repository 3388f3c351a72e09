import type { OnBusy, SentMessage, SentState } from "../sent-message.ts";
import { durationText } from "../time-text.ts";
import { make, setAttribute, setText } from "./element.ts";
import type { View } from "./element.ts";
import { KeyedList } from "./keyed-list.ts";

export interface ComposerActions {
  send(text: string, onBusy: OnBusy): void;
  stop(hard: boolean): void;
  dismiss(sent: SentMessage): void;
}

export interface ShownComposer {
  readonly isRunning: boolean;
  readonly isStopping: boolean;
  readonly unanswered: readonly SentMessage[];
  readonly queued: readonly { readonly inputId: string; readonly text: string }[];
}

export interface Composer extends View<ShownComposer> {
  focus(): void;
}

/** What becomes of a message while a turn runs, and what the button that sends it then says. */
const policies: readonly { readonly value: OnBusy; readonly label: string; readonly verb: string }[] = [
  { value: "steer", label: "Steer it", verb: "Steer" },
  { value: "queue", label: "Queue behind it", verb: "Queue" },
  { value: "interrupt", label: "Interrupt it", verb: "Interrupt" },
  { value: "wait", label: "Wait for it", verb: "Send" },
  { value: "reject", label: "Not while it runs", verb: "Send" },
];

function stateText(state: SentState): string {
  switch (state.kind) {
    case "sending":
      return "sending";
    case "accepted":
      return "stored";
    case "waiting": {
      const { holder, awaits } = state.event;
      if (awaits) return "waits until the turn before it is approved";
      return holder ? `waits for pid ${holder.pid} on ${holder.host}` : "waits";
    }
    case "running":
      return "is being answered";
    case "ended":
      return state.event.outcome === "queued" ? "queued" : (state.event.detail ?? state.event.outcome);
    case "refused":
      return `refused: ${state.problem.detail}`;
    case "retrying":
      return `no answer; sent again in ${durationText(state.inMs)}, runs once`;
  }
}

const isReturned = ({ state }: SentMessage): boolean =>
  state.kind === "refused" ||
  (state.kind === "ended" && state.event.outcome !== "queued" && state.event.outcome !== "answered");

function sentView(first: SentMessage, actions: ComposerActions, putBack: (text: string) => void): View<SentMessage> {
  const state = make("span", { class: "sent-state" });
  const buttons = make(
    "span",
    { class: "sent-buttons" },
    make("button", { type: "button", class: "quiet", on: { click: () => first.again() } }, "Send again"),
    make(
      "button",
      {
        type: "button",
        class: "quiet",
        on: {
          click: () => {
            actions.dismiss(first);
            putBack(first.message.text);
          },
        },
      },
      "Edit",
    ),
    make("button", { type: "button", class: "quiet", on: { click: () => actions.dismiss(first) } }, "Dismiss"),
  );
  const node = make("li", { class: "sent" }, make("span", { class: "sent-text" }, first.message.text), state, buttons);
  return {
    node,
    show(sent) {
      setText(state, stateText(sent.state));
      buttons.hidden = !isReturned(sent);
      setAttribute(node, "data-tone", isReturned(sent) ? "bad" : undefined);
    },
  };
}

/** Where messages are written, what became of the last ones, and the way to stop. */
export function composer(actions: ComposerActions): Composer {
  const text = make("textarea", {
    rows: 1,
    id: "message",
    "aria-label": "Message",
    placeholder: "Write a message",
    enterkeyhint: "send",
    autocomplete: "off",
  });
  const policy = make(
    "select",
    { "aria-label": "While a turn runs" },
    ...policies.map(({ value, label }) => make("option", { value }, label)),
  );
  const send = make("button", { type: "submit", class: "primary" }, "Send");
  const stop = make("button", { type: "button", class: "danger" }, "Stop");
  let shown: ShownComposer = { isRunning: false, isStopping: false, unanswered: [], queued: [] };
  const verb = (): string =>
    (shown.isRunning ? policies.find(({ value }) => value === policy.value)?.verb : undefined) ?? "Send";
  policy.addEventListener("change", () => setText(send, verb()));
  const fit = (): void => {
    text.style.height = "auto";
    text.style.height = `${Math.min(text.scrollHeight + 2, 240)}px`;
  };
  const putBack = (old: string): void => {
    text.value = text.value === "" ? old : `${old}\n${text.value}`;
    fit();
    text.focus();
  };
  const submit = (): void => {
    const written = text.value.trim();
    if (written === "") return;
    actions.send(written, shown.isRunning ? (policy.value as OnBusy) : "wait");
    text.value = "";
    fit();
  };
  text.addEventListener("input", fit);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Escape") text.blur();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  stop.addEventListener("click", () => actions.stop(shown.isStopping));
  const list = make("ul", { class: "outbox", "aria-label": "Messages on their way" });
  const sentList = new KeyedList<SentMessage>(
    list,
    ({ message }) => message.inputId,
    (sent) => sentView(sent, actions, putBack),
  );
  const others = make("p", { class: "others" });
  const node = make(
    "form",
    {
      class: "composer",
      on: {
        submit: (event) => {
          event.preventDefault();
          submit();
        },
      },
    },
    list,
    others,
    make("div", { class: "write" }, text, make("div", { class: "write-buttons" }, policy, stop, send)),
  );
  return {
    node,
    focus: () => text.focus(),
    show(next) {
      shown = next;
      sentList.show(next.unanswered);
      list.hidden = next.unanswered.length === 0;
      const waiting = next.queued.map((one) => `“${one.text.slice(0, 80)}”`).join(", ");
      setText(others, waiting === "" ? "" : `Waiting too: ${waiting}`);
      others.hidden = waiting === "";
      policy.hidden = stop.hidden = !next.isRunning;
      setText(stop, next.isStopping ? "Stop now" : "Stop");
      setAttribute(
        stop,
        "title",
        next.isStopping ? "At once, without letting a tool finish" : "Lets a running tool finish",
      );
      setText(send, verb());
    },
  };
}
