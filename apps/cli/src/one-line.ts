/** A text as one line: what stderr gets is read line by line. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s*[\r\n]+\s*/g, " ").trim();
}
