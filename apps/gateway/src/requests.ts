import { CodedError } from "@turnkeeper/kernel";
import type { OnBusy } from "@turnkeeper/state-store";
import { z } from "zod";

export interface TurnRequest {
  readonly input: string;
  readonly inputId?: string | undefined;
  readonly onBusy?: OnBusy | undefined;
  readonly waitTimeoutMs?: number | undefined;
}

const turnRequest: z.ZodType<TurnRequest> = z.strictObject({
  input: z.string(),
  inputId: z.string().optional(),
  onBusy: z.enum(["wait", "reject", "queue", "steer", "interrupt"]).optional(),
  waitTimeoutMs: z.number().nonnegative().max(86_400_000).optional(),
});

export interface StopRequest {
  readonly hard?: boolean | undefined;
}

const stopRequest: z.ZodType<StopRequest> = z.strictObject({ hard: z.boolean().optional() });

export interface PageQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

const pageQuery: z.ZodType<PageQuery> = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  cursor: z.string().max(400).optional(),
});

function checked<Value>(schema: z.ZodType<Value>, value: unknown, what: string): Value {
  const result = schema.safeParse(value ?? {});
  if (result.success) return result.data;
  const issues = result.error.issues.map((issue) => `${issue.path.join(".") || what}: ${issue.message}`).join("; ");
  throw new CodedError("REQUEST_INVALID", `The ${what} does not fit: ${issues}.`);
}

export const readTurnRequest = (body: unknown): TurnRequest => checked(turnRequest, body, "body");
export const readStopRequest = (body: unknown): StopRequest => checked(stopRequest, body, "body");
export const readPageQuery = (query: unknown): PageQuery => checked(pageQuery, query, "query");
