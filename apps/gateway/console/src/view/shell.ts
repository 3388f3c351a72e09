import { durationText } from "../time-text.ts";
import { make, setAttribute, setText } from "./element.ts";
import type { View } from "./element.ts";

export interface ShellActions {
  showKeys(): void;
  forgetToken(): void;
  tryNow(): void;
}

export interface ShownShell {
  readonly isBoard: boolean;
  readonly runningCount: number | undefined;
  /** Turns that wait for somebody to allow or deny something. */
  readonly askingCount: number;
  /** In how long the gateway is asked again; absent while it answers. */
  readonly missedInMs: number | undefined;
  readonly hasToken: boolean;
}

export interface Shell extends View<ShownShell> {
  readonly side: HTMLElement;
  readonly main: HTMLElement;
  /** Tells who listens instead of looking. */
  announce(text: string): void;
}

/** The frame around everything: where one is, and whether the gateway answers. */
export function shell(actions: ShellActions): Shell {
  const home = make(
    "a",
    { class: "brand", href: "#/" },
    make("span", { class: "key", "aria-hidden": "true" }),
    make("span", {}, "Turnkeeper"),
  );
  const back = make("a", { class: "back", href: "#/", "aria-label": "Back to everything" }, "‹");
  const running = make("a", { class: "running", href: "#/" });
  const keys = make(
    "button",
    { type: "button", class: "quiet keys-button", "aria-label": "Keys", on: { click: () => actions.showKeys() } },
    "?",
  );
  const forget = make(
    "button",
    { type: "button", class: "quiet", on: { click: () => actions.forgetToken() } },
    "Forget token",
  );
  const missed = make("span", { class: "missed-text" });
  const missedBar = make(
    "div",
    { class: "bar missed", "data-tone": "bad", role: "status" },
    missed,
    make("button", { type: "button", class: "quiet", on: { click: () => actions.tryNow() } }, "Try now"),
  );
  const side = make("div", { class: "side" });
  const main = make("main", { id: "main", tabindex: -1 });
  const said = make("p", { class: "unseen", role: "status", "aria-live": "polite" });
  const node = make(
    "div",
    { class: "shell" },
    make("a", { class: "skip", href: "#main" }, "To the content"),
    make("header", { class: "top" }, back, home, running, forget, keys),
    missedBar,
    make("div", { class: "columns" }, side, main),
    said,
  );
  // An address of its own would leave the place that the page shows.
  node.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  return {
    node,
    side,
    main,
    announce: (text) => setText(said, text),
    show({ isBoard, runningCount, askingCount, missedInMs, hasToken }) {
      setAttribute(node, "data-place", isBoard ? "board" : "session");
      const count = (runningCount ?? 0) + askingCount;
      const asking = askingCount === 0 ? "" : `${askingCount} ${askingCount === 1 ? "asks" : "ask"}`;
      const told = [runningCount ? `${runningCount} running` : "", asking].filter((one) => one !== "").join(", ");
      setText(running, told || "idle");
      setAttribute(running, "data-tone", askingCount > 0 ? "info" : count === 0 ? "none" : "good");
      running.hidden = runningCount === undefined;
      forget.hidden = !hasToken;
      missedBar.hidden = missedInMs === undefined;
      const wait = missedInMs !== undefined && missedInMs > 950 ? ` in ${durationText(missedInMs)}` : " now";
      if (missedInMs !== undefined) setText(missed, `The gateway does not answer. Trying again${wait}.`);
      document.title = count === 0 ? "Turnkeeper" : `(${count}) Turnkeeper`;
    },
  };
}
