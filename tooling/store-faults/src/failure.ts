import { CodedError } from "@turnkeeper/kernel";
import type { Failure } from "./acknowledgement.ts";

export function failureOf(error: unknown): Failure {
  const message = error instanceof Error ? error.message : String(error);
  if (!CodedError.is(error)) return { code: undefined, systemCode: undefined, isSealed: false, message };
  const { systemCode } = error.context;
  return {
    code: error.code,
    systemCode: typeof systemCode === "string" ? systemCode : undefined,
    isSealed: message.includes("it is sealed"),
    message,
  };
}
