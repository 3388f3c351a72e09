import { shortcuts } from "../shortcut.ts";
import { make, setText } from "./element.ts";

/** Asks for the gateway's token, until there is one. */
export function tokenDialog(): { readonly node: HTMLDialogElement; ask(wasRefused: boolean): Promise<string> } {
  const token = make("input", {
    type: "password",
    id: "token",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    minlength: 8,
  });
  const why = make("p", { id: "token-why" });
  const form = make(
    "form",
    { method: "dialog" },
    make("h2", {}, "This gateway wants its token"),
    why,
    make("label", { for: "token" }, "Token"),
    token,
    make("div", { class: "dialog-buttons" }, make("button", { type: "submit", class: "primary" }, "Go on")),
  );
  const node = make("dialog", { class: "dialog", "aria-describedby": "token-why" }, form);
  // There is nothing behind it to go back to.
  node.addEventListener("cancel", (event) => event.preventDefault());
  return {
    node,
    ask(wasRefused) {
      setText(
        why,
        `${wasRefused ? "That one was refused. " : ""}It is what TURNKEEPER_GATEWAY_TOKEN holds where the gateway runs. It stays in this tab and goes with it.`,
      );
      token.value = "";
      if (!node.open) node.showModal();
      return new Promise((resolve) => {
        form.addEventListener("submit", () => resolve(token.value.trim()), { once: true });
      });
    },
  };
}

export interface DeleteDialog {
  readonly node: HTMLDialogElement;
  /** Whether the session of that title may go; to leave the question is to say no. */
  ask(title: string): Promise<boolean>;
}

/** Asks before a session is forgotten for good. */
export function deleteDialog(): DeleteDialog {
  const what = make("p", { id: "delete-what" });
  const form = make(
    "form",
    { method: "dialog" },
    make("h2", { id: "delete-title" }, "Delete this session?"),
    what,
    make(
      "div",
      { class: "dialog-buttons" },
      make("button", { type: "submit", class: "quiet", value: "keep", autofocus: true }, "Keep it"),
      make("button", { type: "submit", class: "primary", value: "delete" }, "Delete"),
    ),
  );
  const attributes = { class: "dialog", "aria-labelledby": "delete-title", "aria-describedby": "delete-what" };
  const node = make("dialog", attributes, form);
  return {
    node,
    ask(title) {
      setText(what, `“${title}” and everything that was said in it is forgotten. There is no way back.`);
      node.returnValue = "keep";
      if (!node.open) node.showModal();
      return new Promise((resolve) => {
        node.addEventListener("close", () => resolve(node.returnValue === "delete"), { once: true });
      });
    },
  };
}

export interface ShortcutDialog {
  readonly node: HTMLDialogElement;
  readonly isOn: boolean;
  open(): void;
}

/** The keys, and the switch that turns them off for whoever types otherwise than by hand. */
export function shortcutDialog(): ShortcutDialog {
  const on = make("input", { type: "checkbox", id: "keys-on", checked: true });
  const node = make(
    "dialog",
    { class: "dialog", "aria-labelledby": "keys-title" },
    make("h2", { id: "keys-title" }, "Keys"),
    make(
      "dl",
      { class: "keys" },
      ...shortcuts.flatMap(({ key, does }) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, does)]),
    ),
    make("p", { class: "soft" }, "Enter sends, Shift and Enter begin a new line, Escape leaves the message."),
    make("label", { class: "check", for: "keys-on" }, on, "Single keys work"),
    make(
      "form",
      { method: "dialog", class: "dialog-buttons" },
      make("button", { type: "submit", class: "primary" }, "Close"),
    ),
  );
  return {
    node,
    get isOn() {
      return on.checked;
    },
    open: () => node.showModal(),
  };
}
