/**
 * What a search means, as pure functions: every store filters as it likes, and answers what these say. There is no
 * syntax in it, so no text of a user's can be wrong.
 */

/** The folding keeps the length of most texts, so a place in the folded text is about the same place in the original. */
const snippetBefore = 40;
const snippetLength = 240;

/**
 * The form in which texts are compared: compatible characters are one (full-width forms, ligatures, composed accents),
 * case does not count, and what breaks a line or means nothing to a reader is a space.
 */
export function foldText(text: string): string {
  return text
    .toWellFormed()
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll("ς", "σ")
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Co}]/gu, " ");
}

/** The terms of a search: what stands between white space, folded, each once. None in a text without any. */
export function searchTerms(text: string): readonly string[] {
  return [...new Set(foldText(text).split(/\s+/u))].filter((term) => term !== "");
}

/**
 * Whether a text has every term somewhere in it, inside words too, in any order. Answers the words around the first
 * term, on one line; undefined where a term is missing, and where there is none to look for.
 */
export function snippetOf(text: string, terms: readonly string[]): string | undefined {
  const folded = foldText(text);
  const [first] = terms;
  if (first === undefined || !terms.every((term) => folded.includes(term))) return undefined;
  const at = Math.floor((folded.indexOf(first) / folded.length) * text.length);
  const from = Math.max(0, at - snippetBefore);
  const cut = text.slice(from, from + snippetLength);
  const line = cut
    .replaceAll(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "")
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim();
  return `${from > 0 ? "…" : ""}${line}${from + snippetLength < text.length ? "…" : ""}`;
}
