import type { z } from "zod";
import { toolError } from "./errors.ts";

/** Applies a schema's defaults to a caller's options; throws `OPTION_INVALID` naming option, expectation and value got. */
export function resolveOptions<Options>(owner: string, schema: z.ZodType<Options>, raw: unknown): Readonly<Options> {
  const result = schema.safeParse(raw ?? {});
  if (result.success) return Object.freeze(result.data);
  const faults = result.error.issues.map((issue) => {
    const got = issue.path.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), raw);
    const option = issue.path.length === 0 ? "options" : `option ${issue.path.join(".")}`;
    return `${option}: ${issue.message}${issue.code === "unrecognized_keys" ? "" : `, got ${shown(got)}`}`;
  });
  throw toolError("OPTION_INVALID", `${owner}: ${faults.join("; ")}.`);
}

function shown(value: unknown): string {
  return typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
}

function isRecord(value: unknown): value is Readonly<Record<PropertyKey, unknown>> {
  return typeof value === "object" && value !== null;
}
