import type { Host } from "@turnkeeper/kernel";
import { digestOf } from "@turnkeeper/state-store";
import type { EndedTurn, Entry, EntryBody, JsonValue, SessionRecords, StateStore } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import type { Said, SaidCall } from "./said.ts";

export interface SeedDeps {
  readonly store: StateStore;
  readonly host: Host;
  readonly presence: ProcessPresence;
}

/** A stored call's arguments are an object, or some provider refuses the session for good. */
function inputOf({ inputText }: SaidCall): JsonValue {
  try {
    const value = JSON.parse(inputText || "{}") as JsonValue;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // It is kept as what it is: no JSON.
  }
  return { malformed_arguments: inputText.toWellFormed().slice(0, 2000) };
}

function bodyOf(one: Said, names: Map<string, string>): EntryBody {
  switch (one.role) {
    case "user":
      return { role: "user", text: one.text.toWellFormed() };
    case "tool": {
      const { callId, output } = one;
      return {
        role: "tool",
        callId,
        name: names.get(callId) ?? "unnamed",
        status: "ok",
        output: output.toWellFormed(),
      };
    }
    case "assistant": {
      for (const { callId, name } of one.calls) names.set(callId, name);
      const calls = one.calls.map((call) => ({
        type: "tool-call" as const,
        callId: call.callId,
        name: call.name,
        input: inputOf(call),
      }));
      const text = one.text.toWellFormed();
      return { role: "assistant", parts: [...(text === "" ? [] : [{ type: "text" as const, text }]), ...calls] };
    }
  }
}

/**
 * What a client tells of a conversation, as the records of a session of its own. Each of the assistant's messages begins
 * a turn, since clients number their calls anew in each.
 */
function recordsOf({ host, presence }: SeedDeps, sessionId: string, said: readonly Said[]): SessionRecords {
  const atMs = host.clock.wallMs();
  const { pid, ...identity } = presence.identity;
  const holder = { holderId: host.random.id(), pid, ...identity };
  const names = new Map<string, string>();
  const turns: EndedTurn[] = [];
  const entries: Entry[] = [];
  for (const [index, one] of said.entries()) {
    if (one.role === "assistant" || turns.length === 0)
      turns.push({
        sessionId,
        turnId: `told-${turns.length + 1}`,
        fencingToken: turns.length + 1,
        holder,
        startedAtMs: atMs,
        state: "ended",
        outcome: "answered",
        endedAtMs: atMs,
      });
    const body = bodyOf(one, names);
    const place = { key: `told/${index + 1}`, seq: index + 1, turnId: `told-${turns.length}`, digest: digestOf(body) };
    entries.push({ ...place, body, atMs, archived: false, late: false });
  }
  const totals = { turnCount: turns.length, toolCallCount: 0, inputTokens: 0, outputTokens: 0 };
  return {
    session: { sessionId, createdAtMs: atMs, updatedAtMs: atMs, revision: 1, entryCount: entries.length, totals },
    fencingToken: turns.length,
    inputs: [],
    turns,
    compactionCount: 0,
    summaries: [],
    entries,
  };
}

/** Makes a session of what was said before its first input here. Safe to repeat: one that is there is left alone. */
export async function seedSession(deps: SeedDeps, sessionId: string, said: readonly Said[]): Promise<void> {
  if (said.length > 0) await deps.store.sessions.importSession(recordsOf(deps, sessionId, said));
}
