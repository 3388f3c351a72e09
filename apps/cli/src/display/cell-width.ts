const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

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

/** How many cells of a terminal one character takes that a person sees as one. Control characters count as one. */
export function graphemeWidth(grapheme: string): number {
  if (grapheme.length === 1 && plainAscii.test(grapheme)) return 1;
  // Terminals that join emoji draw them in two cells; those that do not are wrong about what follows, until a redraw.
  if (asEmoji.test(grapheme) || joinedEmoji.test(grapheme)) return 2;
  let width = 0;
  for (const character of grapheme) width += codePointWidth(character);
  // A flag is two letters in one picture.
  return /^\p{Regional_Indicator}{2}$/u.test(grapheme) || /^\p{Emoji_Presentation}\p{Emoji_Modifier}$/u.test(grapheme)
    ? 2
    : width;
}

/** The characters of a text as a person counts them. */
export function* graphemesOf(text: string): Generator<string> {
  if (plainAscii.test(text)) yield* text;
  else for (const { segment } of segmenter.segment(text)) yield segment;
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
