type Listeners = { readonly [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => void };

export interface Attributes {
  readonly class?: string;
  readonly on?: Listeners;
  readonly [name: string]: string | number | boolean | Listeners | undefined;
}

export type Child = Node | string | undefined;

export function setAttribute(node: Element, name: string, value: string | number | boolean | undefined): void {
  if (value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? "" : String(value));
}

/** Text is set where it differs: a reader's selection and a screen reader's place are left alone. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * An element with attributes, listeners and children. Children that are strings become text and nothing else: there is
 * no way from what a model or a tool said to markup.
 */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  { on = {}, ...attributes }: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (typeof value !== "object") setAttribute(node, name, value);
  for (const [name, listener] of Object.entries(on)) node.addEventListener(name, listener as EventListener);
  node.append(...children.filter((child) => child !== undefined));
  return node;
}

/** A part of the page that shows something, and shows it again when it has changed. */
export interface View<Shown> {
  readonly node: HTMLElement;
  show(shown: Shown): void;
}
