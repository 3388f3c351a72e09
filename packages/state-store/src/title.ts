/** A title is one line of a list: a store cuts what it is given, and what it takes from a first message. */

/** No title needs more of a text than its first so many characters: what a store keeps of it. */
const titleSourceLength = 200;

const titleLength = 80;

const surrogate = /[\uD800-\uDFFF]/;

function firstCharacters(text: string, count: number): string {
  // A character has at most two units, and mostly one.
  const units = text.slice(0, 2 * count);
  return surrogate.test(units) ? Array.from(units).slice(0, count).join("") : units.slice(0, count);
}

/** As much of a text as its title may be made from: the first 200 characters. */
export function titleSourceOf(text: string): string {
  // A pair that is cut in two here is not among the first characters: there are enough before it.
  return firstCharacters(text.slice(0, 2 * titleSourceLength).toWellFormed(), titleSourceLength);
}

/** One line of at most 80 characters, white space and control characters made single spaces; empty where nothing is left. */
export function titleOf(text: string): string {
  const line = titleSourceOf(text)
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim();
  const cut = firstCharacters(line, titleLength);
  return cut === line ? line : `${firstCharacters(line, titleLength - 1).trimEnd()}…`;
}
