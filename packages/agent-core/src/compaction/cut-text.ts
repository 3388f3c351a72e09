/** A text of at most `lengthMax` characters: its beginning and its end, and between them how much is left out. */
export function cutText(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  const headLength = Math.ceil(lengthMax * 0.7);
  const tailLength = Math.max(0, lengthMax - headLength);
  const head = text.slice(0, headLength);
  const tail = tailLength === 0 ? "" : text.slice(-tailLength);
  // A cut may fall into a pair of surrogates, and half a character has no UTF-8 form.
  return `${head}\n[… ${text.length - lengthMax} characters left out …]\n${tail}`.toWellFormed();
}
