import { canonicalJson, digestOf } from "@turnkeeper/state-store";
import type { SpooledStep } from "@turnkeeper/state-store";

/**
 * One step on one line: the digest first, so that a line which was cut short by a full disk is still known for the
 * beginning of the one that took its place.
 */
export function lineOf(step: SpooledStep): string {
  return `{"digest":"${digestOf(step)}","step":${canonicalJson(step)}}`;
}

/** The step of a line; nothing where the line is torn, damaged, or of a version that is not known here. */
export function stepOf(line: string): SpooledStep | undefined {
  try {
    const { digest, step } = JSON.parse(line) as { readonly digest?: unknown; readonly step?: SpooledStep };
    return step !== undefined && digestOf(step) === digest ? step : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

/** The lines of a spool file that say something. One that was cut short and then written whole says it once. */
export function linesIn(text: string): readonly string[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.filter((line) => !lines.some((other) => other.length > line.length && other.startsWith(line)));
}
