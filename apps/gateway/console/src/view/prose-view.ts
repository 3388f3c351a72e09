import { prosePieces } from "../prose.ts";
import { make } from "./element.ts";
import type { View } from "./element.ts";

/** What was said, with its code set apart. */
export function proseView(className: string): View<string> {
  const node = make("div", { class: className });
  let shown: string | undefined;
  return {
    node,
    show(text) {
      if (text === shown) return;
      shown = text;
      const pieces = prosePieces(text).map((piece) => {
        switch (piece.kind) {
          case "words":
            return piece.text;
          case "strong":
            return make("strong", {}, piece.text);
          case "code":
            return make("code", {}, piece.text);
          case "fence":
            return make("pre", { tabindex: 0, "data-language": piece.language }, make("code", {}, piece.text));
        }
      });
      node.replaceChildren(...pieces);
    },
  };
}
