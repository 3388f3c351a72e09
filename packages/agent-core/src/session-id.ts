import { CodedError } from "@turnkeeper/kernel";

const pattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** The id when it is one; throws `SESSION_ID_INVALID` otherwise. An id is a key, never a path: no slash, no space. */
export function checkedSessionId(sessionId: string): string {
  // `$` would also match before a final newline.
  if (pattern.test(sessionId) && !sessionId.endsWith("\n")) return sessionId;
  const shown = sessionId.length > 60 ? `${sessionId.slice(0, 60)}… (${sessionId.length} characters)` : sessionId;
  throw new CodedError(
    "SESSION_ID_INVALID",
    `Not a session id: ${JSON.stringify(shown)}. Use 1 to 128 letters, digits, dots, underscores and dashes, the first one a letter or digit.`,
  );
}
