import type { View } from "./element.ts";

/** The children of a node, one view for each item; an item keeps its view, its focus and its place in the page. */
export class KeyedList<Item> {
  readonly #parent: HTMLElement;
  readonly #keyOf: (item: Item) => string;
  readonly #makeView: (item: Item) => View<Item>;
  #views = new Map<string, View<Item>>();

  constructor(parent: HTMLElement, keyOf: (item: Item) => string, makeView: (item: Item) => View<Item>) {
    this.#parent = parent;
    this.#keyOf = keyOf;
    this.#makeView = makeView;
  }

  show(items: readonly Item[]): void {
    const byKey = new Map(items.map((item) => [this.#keyOf(item), item]));
    for (const [key, { node }] of this.#views) if (!byKey.has(key)) node.remove();
    const views = new Map<string, View<Item>>();
    let next = this.#parent.firstChild;
    for (const [key, item] of byKey) {
      const view = this.#views.get(key) ?? this.#makeView(item);
      view.show(item);
      views.set(key, view);
      if (view.node === next) next = next.nextSibling;
      else this.#parent.insertBefore(view.node, next);
    }
    this.#views = views;
  }
}
