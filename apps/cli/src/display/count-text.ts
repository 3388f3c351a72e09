const units = ["", "k", "M", "G", "T"];

/** A number as people read it at a glance: 950, 12.3k, 4.6M. */
export function countText(count: number): string {
  let scaled = count;
  let unit = 0;
  while (scaled >= 999.95 && unit < units.length - 1) {
    scaled /= 1000;
    unit++;
  }
  return `${unit === 0 ? scaled : scaled.toFixed(1)}${units[unit] ?? ""}`;
}

/** `1 turn`, `2 turns`, `2 entries`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${countText(count)} ${count === 1 ? noun : plural}`;
}
