/** Controls, and marks that turn or hide the letters around them; line ends and tabs are no secret. */
const unseen = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * Text in which nothing hides: what a call asks for is judged by how it looks, and a mark that turns its letters around
 * would make it look like something else. Each one is named in its place.
 */
export function visibleText(text: string): string {
  return text.replaceAll(unseen, (one) => {
    if (one === "\n" || one === "\t") return one;
    return `⟨U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}
