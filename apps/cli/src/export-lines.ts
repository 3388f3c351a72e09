/** What each line of an exported session looks like; a key that is not known makes it another format. */
import { z } from "zod";
import { exportFormat, exportVersion } from "./session-export.ts";

export type LineType = "session" | "input" | "turn" | "entry" | "end";

const text = z.string();
const count = z
  .int()
  .min(0)
  .max(2 ** 48);
const seq = z
  .int()
  .min(1)
  .max(2 ** 48);
const timeMs = z.number().min(0).max(8.64e15);
const fields = z.record(z.string(), z.json());

const usage = z.strictObject({
  inputTokens: z.number().optional(),
  cachedInputTokens: z.number().optional(),
  cacheWriteTokens: z.number().optional(),
  outputTokens: z.number().optional(),
  reasoningTokens: z.number().optional(),
});

const processFields = {
  instanceId: text,
  host: text,
  bootId: text,
  pid: z.int(),
  pidStart: text.optional(),
  pidNamespace: text.optional(),
  socketPath: text.optional(),
};

const part = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text, provider: fields.optional() }),
  z.strictObject({ type: z.literal("reasoning"), text, provider: fields.optional() }),
  z.strictObject({
    type: z.literal("tool-call"),
    callId: text,
    name: text,
    input: z.json(),
    provider: fields.optional(),
  }),
  z.strictObject({
    type: z.literal("provider-tool"),
    callId: text,
    name: text,
    input: z.json(),
    output: z.json().optional(),
    isError: z.boolean().optional(),
    provider: fields.optional(),
    resultProvider: fields.optional(),
  }),
]);

const body = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("user"), text, inputId: text.optional(), child: text.optional() }),
  z.strictObject({
    role: z.literal("assistant"),
    parts: z.array(part),
    partial: z.boolean().optional(),
    model: text.optional(),
    usage: usage.optional(),
  }),
  z.strictObject({
    role: z.literal("tool"),
    callId: text,
    name: text,
    status: z.enum(["ok", "error", "denied", "interrupted", "unknown"]),
    output: z.json(),
    note: text.optional(),
    repeats: text.optional(),
    receipt: z.json().optional(),
  }),
  z.strictObject({ role: z.literal("summary"), text, userTexts: z.array(text).optional() }),
  z.strictObject({ role: z.literal("notice"), text }),
]);

const inputEnd = z.enum(["answered", "interrupted", "failed", "cancelled", "expired"]);

const inputFields = {
  type: z.literal("input"),
  sessionId: text,
  inputId: text,
  seq,
  text,
  digest: text,
  delivery: z.enum(["turn", "steer"]),
  offeredAtMs: timeMs,
  child: z
    .strictObject({
      sessionId: text,
      turnId: text.optional(),
      callId: text,
      outcome: inputEnd,
      reason: text.optional(),
    })
    .optional(),
};

const stop = z.strictObject({ hard: z.boolean(), reason: text, by: text, atMs: timeMs });

const turnFields = {
  type: z.literal("turn"),
  sessionId: text,
  turnId: text,
  fencingToken: seq,
  holder: z.strictObject({ ...processFields, holderId: text }),
  startedAtMs: timeMs,
  approvals: z
    .array(
      z.strictObject({
        callId: text,
        name: text,
        askedAtMs: timeMs,
        answer: z
          .strictObject({ decision: z.enum(["allow", "deny"]), by: text, atMs: timeMs, output: z.json().optional() })
          .optional(),
        child: z.strictObject({ sessionId: text, sinceMs: timeMs, endedAtMs: timeMs.optional() }).optional(),
      }),
    )
    .optional(),
};

const exportLines = {
  session: z.strictObject({
    type: z.literal("session"),
    format: z.literal(exportFormat),
    version: z.literal(exportVersion),
    sessionId: text,
    createdAtMs: timeMs,
    updatedAtMs: timeMs,
    revision: count,
    entryCount: count,
    title: text.optional(),
    lastEntry: z.strictObject({ atMs: timeMs, role: text, toolName: text.optional() }).optional(),
    totals: z.strictObject({ turnCount: count, toolCallCount: count, inputTokens: count, outputTokens: count }),
    parent: z.strictObject({ sessionId: text, turnId: text, callId: text }).optional(),
    fencingToken: count,
    compactionCount: count,
    summaries: z.array(z.strictObject({ seq, throughSeq: seq })),
  }),
  input: z.discriminatedUnion("state", [
    z.strictObject({
      ...inputFields,
      state: z.literal("pending"),
      runner: z.strictObject({ ...processFields, runnerId: text }).optional(),
    }),
    z.strictObject({ ...inputFields, state: z.literal("taken"), turnId: text }),
    z.strictObject({
      ...inputFields,
      state: z.literal("settled"),
      turnId: text.optional(),
      end: inputEnd,
      endedAtMs: timeMs,
    }),
  ]),
  turn: z.discriminatedUnion("state", [
    z.strictObject({
      ...turnFields,
      state: z.literal("running"),
      stop: stop.optional(),
    }),
    z.strictObject({ ...turnFields, state: z.literal("suspended"), suspendedAtMs: timeMs, usage: usage.optional() }),
    z.strictObject({
      ...turnFields,
      state: z.literal("ended"),
      stop: stop.optional(),
      outcome: z.enum(["answered", "interrupted", "failed"]),
      reason: text.optional(),
      detail: text.optional(),
      usage: usage.optional(),
      endedAtMs: timeMs,
    }),
  ]),
  entry: z.strictObject({
    type: z.literal("entry"),
    key: text,
    body,
    seq,
    turnId: text,
    digest: text,
    atMs: timeMs,
    archived: z.boolean(),
    late: z.boolean(),
  }),
  end: z.strictObject({ type: z.literal("end"), lineCount: count }),
} satisfies Readonly<Record<LineType, z.ZodType>>;

export function isLineType(type: unknown): type is LineType {
  return typeof type === "string" && Object.hasOwn(exportLines, type);
}

/** What is wrong with a line of this type, as field and expectation; nothing where it is right. */
export function lineFault(type: LineType, value: object): string | undefined {
  const result = exportLines[type].safeParse(value);
  if (result.success) return undefined;
  const [issue] = result.error.issues;
  if (!issue) return "makes no sense";
  return issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`;
}
