/** ULID text (github.com/ulid/spec): 48 bits of milliseconds, 80 bits of chance, Crockford base 32. */

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Two characters at once: half the steps. */
const pairs: readonly string[] = Array.from(alphabet, (high) => Array.from(alphabet, (low) => high + low)).flat();

function textOf(value: number, pairCount: number): string {
  let text = "";
  let rest = value;
  for (let index = 0; index < pairCount; index++) {
    text = (pairs[rest % 1024] ?? "") + text;
    rest = Math.floor(rest / 1024);
  }
  return text;
}

/** Encodes a time in milliseconds since the epoch and ten random bytes; sortable as text by time. */
export function encodeUlid(timeMs: number, randomBytes: Uint8Array): string {
  let text = textOf(Math.floor(timeMs), 5);
  // Five bytes are eight characters exactly, and below 2^40: arithmetic stays exact.
  for (const offset of [0, 5]) {
    let group = 0;
    for (let index = 0; index < 5; index++) group = group * 256 + (randomBytes[offset + index] ?? 0);
    text += textOf(group, 4);
  }
  return text;
}
