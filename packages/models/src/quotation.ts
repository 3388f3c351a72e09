/**
 * What may be repeated of a provider's words. They are the best hint a user gets ("does not support tools"), and they
 * may echo a key, a header or the conversation; error messages are stored, logged and shown, so those are masked.
 */

const longestQuotation = 200;
// Runs of the prompt this long are its own words; shorter ones are English.
const promptRunLength = 20;
const secretRunLength = 8;
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

/** Masks every stretch of `text` that is a run of at least `runLength` characters of one of `sources`. */
function maskRuns(text: string, sources: readonly string[], runLength: number): string {
  const covered = Array.from({ length: text.length }, () => false);
  for (let start = 0; start + runLength <= text.length; start++) {
    const run = text.slice(start, start + runLength);
    if (sources.some((source) => source.includes(run))) covered.fill(true, start, start + runLength);
  }
  return text.replace(/[^]/g, (char, index: number) =>
    covered[index] ? (index > 0 && covered[index - 1] ? "" : mask) : char,
  );
}

/** Masks words that look like a name, a number or a secret (not plain English) and stand in one of `sources`. */
function maskDistinctWords(text: string, sources: readonly string[]): string {
  return text.replace(/[^\s"'`()<>{}[\],;:=]{6,}/g, (word) =>
    /[\d_@/\\-]|[a-z][A-Z]/.test(word) && sources.some((source) => source.includes(word)) ? mask : word,
  );
}

/** One line of a provider's words, fit to be stored and shown: no secret, no header, nothing of the prompt. */
export function quotable(words: string, secrets: readonly string[], promptTexts: readonly string[]): string {
  let line = words
    .slice(0, 4 * longestQuotation)
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  for (const pattern of secretPatterns) line = line.replace(pattern, mask);
  for (const secret of secrets) line = line.replaceAll(secret, mask);
  line = maskRuns(line, secrets, secretRunLength);
  line = line.slice(0, longestQuotation + 1);
  for (const text of promptTexts) {
    const whole = text.trim();
    if (whole.length >= 6 && whole.length < promptRunLength) line = line.replaceAll(whole, mask);
  }
  line = maskDistinctWords(maskRuns(line, promptTexts, promptRunLength), promptTexts);
  return line.length > longestQuotation ? `${line.slice(0, longestQuotation)}…` : line;
}
