/**
 * What may be repeated of a provider's words. They are the best hint a user gets ("does not support tools"), and they
 * may echo a key, a header or the conversation; error messages are stored, logged and shown, so those are masked.
 */

const longestQuotation = 200;
// Counted in letters and digits: this many in a row are the prompt's own words, fewer are just English.
const promptRunLength = 16;
const secretRunLength = 8;
const shortestPromptText = 6;
// Searching this much takes some tens of milliseconds; beyond, the words are left out rather than the loop held up.
const longestSearched = 500_000;
const mask = "[…]";

const secretPatterns: readonly RegExp[] = [
  /\b(?:bearer|basic)\s+[^\s"',]+/gi,
  /\b(?:authorization|x-api-key|api[-_ ]?key|token|password|secret)["']?\s*[:=]\s*["']?[^\s"',]+/gi,
  /\b(?:sk|pk|rk|gsk|xai|nvapi|AIza)[-_]?[\w*-]{8,}/g,
];

/** All texts inside a JSON-like value, at any depth; binary data is passed over. */
export function textsWithin(value: unknown): string[] {
  const texts: string[] = [];
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string") texts.push(next);
    else if (typeof next === "object" && next !== null && !ArrayBuffer.isView(next)) {
      for (const inner of Object.values(next)) open.push(inner);
    }
  }
  return texts;
}

/** Letters and digits alone: an echo comes with other white space, quotes and escapes than what was sent. */
const lettersOf = (text: string): string => text.replace(/[^\p{L}\p{N}]+/gu, "");

function maskWhere(line: string, isCovered: (index: number) => boolean): string {
  return line.replace(/[^]/g, (char, index: number) => {
    if (!isCovered(index)) return char;
    return index > 0 && isCovered(index - 1) ? "" : mask;
  });
}

/** Masks every stretch of `line` that shares `runLength` letters in a row with one of `sources`. */
function maskRuns(line: string, sources: readonly string[], runLength: number): string {
  const indexes: number[] = [];
  for (const { 0: letter, index } of line.matchAll(/[\p{L}\p{N}]/gu)) {
    for (let unit = 0; unit < letter.length; unit++) indexes.push(index + unit);
  }
  const letters = lettersOf(line);
  const covered = new Set<number>();
  for (let start = 0; start + runLength <= letters.length; start++) {
    const run = letters.slice(start, start + runLength);
    if (!sources.some((source) => source.includes(run))) continue;
    for (let index = indexes[start]!; index <= indexes[start + runLength - 1]!; index++) covered.add(index);
  }
  return maskWhere(line, (index) => covered.has(index));
}

/** Masks words that look like a name, a number or a secret (not plain English) and stand in one of `sources`. */
function maskDistinctWords(line: string, sources: readonly string[]): string {
  return line.replace(/[^\s"'`()<>{}[\],;:=]{6,}/g, (word) => {
    const isDistinct = /[\d_@/\\-]|[a-z][A-Z]/.test(word);
    return isDistinct && sources.some((source) => source.includes(word)) ? mask : word;
  });
}

/** Whether a plain word of a provider (`type`, `code`, `param`) is its own and not an echo. */
export function isOwnWord(word: string, secrets: readonly string[], promptTexts: readonly string[]): boolean {
  return (
    maskRuns(word, secrets.map(lettersOf), secretRunLength) === word && !promptTexts.some((text) => text.includes(word))
  );
}

/** One line of a provider's words, fit to be stored and shown: no secret, no header, nothing of the prompt. Empty when there is none. */
export function quotable(words: string, secrets: readonly string[], promptTexts: readonly string[]): string {
  if (promptTexts.reduce((sum, text) => sum + text.length, 0) > longestSearched) return "";
  let line = words
    .slice(0, 4 * longestQuotation)
    .replace(/\\[nrtbf]|[\s\p{Cc}]+/gu, " ")
    .replace(/ {2,}/g, " ")
    .trim();
  for (const pattern of secretPatterns) line = line.replace(pattern, mask);
  for (const secret of secrets) line = line.replaceAll(secret, mask);
  line = maskRuns(line, secrets.map(lettersOf), secretRunLength);
  line = line.slice(0, longestQuotation + 1);
  for (const text of promptTexts) {
    const whole = text.trim();
    if (whole.length >= shortestPromptText && whole.length <= 2 * promptRunLength) line = line.replaceAll(whole, mask);
  }
  line = maskDistinctWords(maskRuns(line, promptTexts.map(lettersOf), promptRunLength), promptTexts);
  return line.length > longestQuotation ? `${line.slice(0, longestQuotation)}…` : line;
}
