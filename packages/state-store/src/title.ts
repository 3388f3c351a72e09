/** A title is one line of a list: a store cuts what it is given, and what it takes from a first message. */

/** No title needs more of a text than its first so many characters: what a store keeps of it. */
const titleSourceLength = 200;

const titleLength = 80;

function firstCharacters(text: string, count: number): string {
  // A character has at most two units.
  return Array.from(text.slice(0, 2 * count))
    .slice(0, count)
    .join("");
}

/** As much of a text as its title may be made from: the first 200 characters. */
export function titleSourceOf(text: string): string {
  return firstCharacters(text.toWellFormed(), titleSourceLength);
}

/** One line of at most 80 characters, white space and control characters made single spaces; empty where nothing is left. */
export function titleOf(text: string): string {
  const line = titleSourceOf(text)
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim();
  const cut = firstCharacters(line, titleLength);
  return cut === line ? line : `${firstCharacters(line, titleLength - 1).trimEnd()}…`;
}
