/** What a thrown value says: an error's message, anything else as text. JavaScript lets anything be thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
