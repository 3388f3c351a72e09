/** A duration for people: "0.5 s", "90 s". Below ten seconds to the tenth, since half a second is not one. */
export function durationText(ms: number): string {
  return `${ms < 10_000 ? Math.round(ms / 100) / 10 : Math.round(ms / 1000)} s`;
}
