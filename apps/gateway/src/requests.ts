import { z } from "zod";
import { CodedError } from "@turnkeeper/kernel";

const turnRequest = z.strictObject({
  input: z.string(),
  inputId: z.string().optional(),
  onBusy: z.enum(["wait", "reject", "queue", "steer", "interrupt"]).optional(),
  waitTimeoutMs: z.number().nonnegative().max(86_400_000).optional(),
});

const stopRequest = z.strictObject({ hard: z.boolean().optional() });

const pageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  cursor: z.string().max(400).optional(),
});

function checked<Value>(schema: z.ZodType<Value>, value: unknown, what: string): Value {
  const result = schema.safeParse(value ?? {});
  if (result.success) return result.data;
  const issues = result.error.issues.map((issue) => `${issue.path.join(".") || what}: ${issue.message}`).join("; ");
  throw new CodedError("REQUEST_INVALID", `The ${what} does not fit: ${issues}.`);
}

export type TurnRequest = z.infer<typeof turnRequest>;

export const readTurnRequest = (body: unknown): TurnRequest => checked(turnRequest, body, "body");
export const readStopRequest = (body: unknown): { hard?: boolean | undefined } => checked(stopRequest, body, "body");
export const readPageQuery = (query: unknown): { limit: number; cursor?: string | undefined } =>
  checked(pageQuery, query, "query");
