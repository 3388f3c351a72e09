/** What a key does where nobody writes. */
export interface Shortcut {
  readonly key: string;
  readonly does: string;
}

export const shortcuts = [
  { key: "/", does: "Write a message" },
  { key: "n", does: "Begin a new session" },
  { key: "j", does: "Next session" },
  { key: "k", does: "Previous session" },
  { key: "g", does: "Everything that runs" },
  { key: "s", does: "Stop the turn" },
  { key: "S", does: "Stop it at once" },
  { key: "D", does: "Delete the session, once you say so" },
  { key: "a", does: "Go to the call that asks" },
  { key: "?", does: "Show these keys" },
] as const satisfies readonly Shortcut[];

export type ShortcutKey = (typeof shortcuts)[number]["key"];

interface PressedKey {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly isComposing: boolean;
}

/** The shortcut that was pressed; nothing where somebody writes, or means the browser. */
export function shortcutOf(pressed: PressedKey, isWriting: boolean): ShortcutKey | undefined {
  if (isWriting || pressed.ctrlKey || pressed.metaKey || pressed.altKey || pressed.isComposing) return undefined;
  return shortcuts.find(({ key }) => key === pressed.key)?.key;
}
