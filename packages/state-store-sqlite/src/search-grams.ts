/**
 * The groups of characters by which the index filters: every three that stand together in a word, since a term may
 * stand anywhere inside one. Words with other than ASCII characters also give what is left at their end, one and two
 * characters, so that a term as short as a Chinese word is the beginning of a group. All of it in folded text.
 */

const asciiWord = /^[!-~]*$/;

/** A text with more is not taken apart; a search looks into it always. */
const longestText = 256 * 1024;

/** So many groups pick out the entries well enough; the rest is found by comparing. */
const filterGramsMax = 24;

/** No folded text has a character for private use, so these are never groups of a text. */
const sessionMark = "\uE000";
const longMark = "\uE001";

function sessionGram(sessionNo: number): string {
  return `${sessionMark}${sessionNo}`;
}

function addGrams(grams: Set<string>, word: string): void {
  if (asciiWord.test(word)) {
    for (let at = 0; at + 3 <= word.length; at++) grams.add(word.slice(at, at + 3));
    return;
  }
  const characters = Array.from(word);
  for (const at of characters.keys()) grams.add(characters.slice(at, at + 3).join(""));
}

/** What the index keeps of an entry, given the folded text of it. */
export function gramsOf(sessionNo: number, folded: string): string {
  if (folded.length > longestText) return `${sessionGram(sessionNo)} ${longMark}`;
  const grams = new Set<string>([sessionGram(sessionNo)]);
  for (const word of folded.split(/\s+/u)) addGrams(grams, word);
  return [...grams].join(" ");
}

/** One token of the query language, whatever the characters. */
function quoted(gram: string): string {
  return `"${gram.replaceAll('"', '""')}"`;
}

/** Spread over all of them, since those that stand together tell little more than one of them. */
function picked(grams: readonly string[]): readonly string[] {
  const step = grams.length / filterGramsMax;
  return step <= 1
    ? grams
    : Array.from({ length: filterGramsMax }, (_, index) => grams[Math.floor(index * step)] ?? "");
}

/** The query for entries that may have these terms; undefined where no term is long enough to filter by. */
export function gramQuery(terms: readonly string[], sessionNo: number | undefined): string | undefined {
  const whole = new Set<string>();
  const beginnings: string[] = [];
  for (const term of terms) {
    const { length } = Array.from(term);
    if (length < 3 && !asciiWord.test(term)) beginnings.push(`${quoted(term)} *`);
    if (length < 3) continue;
    const grams = new Set<string>();
    addGrams(grams, term);
    // The ends of a term are no ends in a longer word.
    for (const gram of grams) if (Array.from(gram).length === 3) whole.add(gram);
  }
  const parts = [...picked([...whole]).map(quoted), ...beginnings];
  if (parts.length === 0) return undefined;
  const found = `((${parts.join(" AND ")}) OR ${quoted(longMark)})`;
  return sessionNo === undefined ? found : `${quoted(sessionGram(sessionNo))} AND ${found}`;
}

/** The query that an entry answers which has all of these, as `gramsOf` gives them. */
export function probeQuery(grams: string): string {
  return picked(grams.split(" ")).map(quoted).join(" AND ");
}

/** The query for everything of a session. */
export function sessionQuery(sessionNo: number): string {
  return quoted(sessionGram(sessionNo));
}
