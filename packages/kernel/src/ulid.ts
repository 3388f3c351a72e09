/** ULID text (github.com/ulid/spec): 48 bits of milliseconds, 80 bits of chance, Crockford base 32. */

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Encodes a time in milliseconds since the epoch and ten random bytes; sortable as text by time. */
export function encodeUlid(timeMs: number, randomBytes: Uint8Array): string {
  let text = "";
  let rest = Math.floor(timeMs);
  for (let index = 0; index < 10; index++) {
    text = alphabet[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  // Five bytes are eight characters exactly, and below 2^40: arithmetic stays exact.
  for (const offset of [0, 5]) {
    let group = 0;
    for (let index = 0; index < 5; index++) group = group * 256 + (randomBytes[offset + index] ?? 0);
    let part = "";
    for (let index = 0; index < 8; index++) {
      part = alphabet[group % 32] + part;
      group = Math.floor(group / 32);
    }
    text += part;
  }
  return text;
}
