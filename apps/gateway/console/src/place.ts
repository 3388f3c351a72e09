/** What the page shows, as its address says. */
export type Place = { readonly kind: "board" } | { readonly kind: "session"; readonly sessionId: string };

const sessionPattern = /^#\/s\/([^/]+)$/;
/** As the gateway has it. */
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** What is no place of the page is the board. */
export function placeOf(hash: string): Place {
  const [, encoded] = sessionPattern.exec(hash) ?? [];
  if (encoded === undefined) return { kind: "board" };
  try {
    const sessionId = decodeURIComponent(encoded);
    return idPattern.test(sessionId) ? { kind: "session", sessionId } : { kind: "board" };
  } catch {
    return { kind: "board" };
  }
}

export const sessionHash = (sessionId: string): string => `#/s/${encodeURIComponent(sessionId)}`;
