/** A duration for people, in at most two figures: `0.4 s`, `45 s`, `12 min`, `3 h`, `5 d`. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 99.5) return `${Math.round(minutes)} min`;
  const hours = minutes / 60;
  return hours < 47.5 ? `${Math.round(hours)} h` : `${Math.round(hours / 24)} d`;
}

/** How long ago something was, for a list: nobody wants to know whether it was 41 or 42 s. */
export function agoText(iso: string, nowMs: number): string {
  const ms = nowMs - Date.parse(iso);
  if (Number.isNaN(ms)) return "";
  return ms < 60_000 ? "now" : durationText(ms);
}
