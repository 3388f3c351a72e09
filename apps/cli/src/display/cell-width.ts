// What belongs to the character before it, and what one character is then: flags, emoji and what is joined to them,
// Hangul in parts, and anything with its marks. Intl.Segmenter tells the same with a few rules for Indic scripts more;
// to make one takes as long as the rest of a start, and in a long text it is slow by the square.
const marks = "\\p{Grapheme_Extend}\\p{Emoji_Modifier}";
const extend = `[${marks}\\p{M}\\u200d]*`;
const character = new RegExp(
  [
    "[\\p{Cc}\\p{Zl}\\p{Zp}]",
    "\\p{Regional_Indicator}{2}",
    `\\p{Extended_Pictographic}(?:[${marks}]*\\u200d\\p{Extended_Pictographic})*`,
    "[\\u1100-\\u115f\\ua960-\\ua97c]*[\\uac00-\\ud7a3\\u1160-\\u11a7\\ud7b0-\\ud7c6][\\u1160-\\u11a7\\ud7b0-\\ud7c6]*[\\u11a8-\\u11ff\\ud7cb-\\ud7fb]*",
    "[\\u1100-\\u115f\\ua960-\\ua97c]+",
    "[\\u11a8-\\u11ff\\ud7cb-\\ud7fb]+",
    "[^]",
  ]
    .map((one, index) => (index === 0 ? one : one + extend))
    .join("|"),
  "gu",
);

const plainAscii = /^[\x20-\x7e]*$/;
/** Takes no cell of its own: marks on the character before it, joiners, selectors, the later parts of a Hangul syllable. */
const zeroWidth = /^[\p{Mn}\p{Me}\p{Cf}\p{Default_Ignorable_Code_Point}\u1160-\u11ff\ud7b0-\ud7fb]$/u;
/** East Asian Wide and Fullwidth, as ranges of blocks, and what is an emoji by itself. */
const wide =
  /^[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u3247\u3250-\ua4c6\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6b\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]$/u;
/** A pictograph that a selector asks to be shown in colour. */
const asEmoji = /^\p{Emoji}\ufe0f/u;
const joinedEmoji = /^\p{Extended_Pictographic}.*\u200d/su;

function codePointWidth(character: string): number {
  if (zeroWidth.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** The most frequent ones, so that a page of them costs no look at a table. */
function frequentWidth(code: number): number | undefined {
  if (code >= 0x20 && code <= 0x7e) return 1;
  return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0xac00 && code <= 0xd7a3) ? 2 : undefined;
}

/** How many cells of a terminal one character takes that a person sees as one. Control characters count as one. */
export function graphemeWidth(grapheme: string): number {
  const frequent = grapheme.length === 1 ? frequentWidth(grapheme.charCodeAt(0)) : undefined;
  if (frequent !== undefined) return frequent;
  // Terminals that join emoji draw them in two cells; those that do not are wrong about what follows, until a redraw.
  if (asEmoji.test(grapheme) || joinedEmoji.test(grapheme)) return 2;
  let width = 0;
  for (const point of grapheme) width += codePointWidth(point);
  // A flag is two letters in one picture.
  return /^\p{Regional_Indicator}{2}$/u.test(grapheme) || /^\p{Emoji_Presentation}\p{Emoji_Modifier}$/u.test(grapheme)
    ? 2
    : width;
}

/** The characters of a text as a person counts them. */
export function* graphemesOf(text: string): Generator<string> {
  if (plainAscii.test(text)) yield* text;
  else for (const [grapheme] of text.matchAll(character)) yield grapheme;
}

/** How many cells a text takes on one line. */
export function cellWidth(text: string): number {
  if (plainAscii.test(text)) return text.length;
  let width = 0;
  for (const grapheme of graphemesOf(text)) width += graphemeWidth(grapheme);
  return width;
}

/** As much of a text as fits into so many cells. */
export function fitting(text: string, cells: number): string {
  if (plainAscii.test(text)) return text.slice(0, Math.max(0, cells));
  let width = 0;
  let end = 0;
  for (const grapheme of graphemesOf(text)) {
    width += graphemeWidth(grapheme);
    if (width > cells) break;
    end += grapheme.length;
  }
  return text.slice(0, end);
}

/** The text with spaces behind it, up to so many cells. */
export function padded(text: string, cells: number): string {
  return text + " ".repeat(Math.max(0, cells - cellWidth(text)));
}
