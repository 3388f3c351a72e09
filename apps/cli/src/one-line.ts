/** A text as one line: what stderr gets is read line by line, and may have come with what it is about from anywhere. */
export function oneLine(text: string): string {
  return text
    .replaceAll(/\s*[\r\n]+\s*/g, " ")
    .replaceAll(/[^\P{Cc}\t]/gu, "")
    .trim();
}
