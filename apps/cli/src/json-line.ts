/** What some readers take for the end of a line, though JSON and JSON Lines do not. */
const lineBreaks = /[\u0085\u2028\u2029]/g;

/** A value as one line of JSON, whatever its reader splits lines at. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    lineBreaks,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
