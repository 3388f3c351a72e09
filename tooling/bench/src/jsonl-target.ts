import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from "node:fs";
import type { AppendTarget } from "./append-target.ts";
import { kilobyte } from "./lease-holder.ts";

/** A file of lines for each session, each line on the disk before it is acknowledged. No fence, no atomicity, no index. */
export function openJsonlTarget(path: string, sessions: ReadonlyMap<string, number>): AppendTarget {
  const files = new Map([...sessions.keys()].map((sessionId) => [sessionId, openSync(`${path}-${sessionId}`, "a")]));
  let count = 0;
  const line = (): string => `${JSON.stringify({ key: `entry-${++count}`, body: { role: "user", text: kilobyte } })}\n`;
  const fileOf = (sessionId: string): number => files.get(sessionId) ?? -1;
  for (const [sessionId, messageCount] of sessions)
    for (let index = 0; index < messageCount; index++) writeSync(fileOf(sessionId), line());
  return {
    append: (sessionId) => {
      writeSync(fileOf(sessionId), line());
      fdatasyncSync(fileOf(sessionId));
    },
    load: async (sessionId) => {
      const lines = readFileSync(`${path}-${sessionId}`, "utf8").trimEnd().split("\n");
      return lines.map((one) => JSON.parse(one) as unknown).length;
    },
    close: async () => {
      for (const file of files.values()) closeSync(file);
    },
  };
}
