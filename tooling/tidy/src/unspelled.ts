/** A pattern put together from parts, so that the file that looks for a word does not hold it. */
export function unspelled(flags: string, ...parts: readonly string[]): RegExp {
  return new RegExp(parts.join(""), flags);
}
