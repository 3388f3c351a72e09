import type { AppendTarget } from "./append-target.ts";
import { kilobyte } from "./lease-holder.ts";
import { peer } from "./peers.ts";
import { openRaw } from "./raw-database.ts";

/** LangGraph's SQLite checkpointer, as a graph uses it: a checkpoint of the whole conversation at each step. */
export async function openLanggraphTarget(path: string, sessions: ReadonlyMap<string, number>): Promise<AppendTarget> {
  const { SqliteSaver } = peer("@langchain/langgraph-checkpoint-sqlite");
  const { emptyCheckpoint, uuid6 } = peer("@langchain/langgraph-checkpoint");
  const { HumanMessage } = peer("@langchain/core/messages");
  const database = openRaw(path, "FULL");
  const saver = new SqliteSaver(database);
  const configOf = (sessionId: string): unknown => ({ configurable: { thread_id: sessionId, checkpoint_ns: "" } });
  const threads = new Map<string, { config: unknown; readonly messages: unknown[] }>();
  let step = 0;
  const append = async (sessionId: string): Promise<void> => {
    const thread = threads.get(sessionId);
    if (!thread) throw new Error(`Session ${sessionId} was not opened.`);
    thread.messages.push(new HumanMessage({ content: kilobyte, id: `entry-${++step}` }));
    const values = { messages: [...thread.messages] };
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(step), channel_values: values };
    thread.config = await saver.put(thread.config, checkpoint, { source: "loop", step, parents: {} });
  };
  for (const [sessionId, messageCount] of sessions) {
    const messages = Array.from(
      { length: Math.max(0, messageCount - 1) },
      (_, index) => new HumanMessage({ content: kilobyte, id: `seed-${index}` }),
    );
    threads.set(sessionId, { config: configOf(sessionId), messages });
    await append(sessionId);
  }
  return {
    append,
    load: async (sessionId) => (await saver.getTuple(configOf(sessionId))).checkpoint.channel_values.messages.length,
    close: async () => void database.close(),
  };
}
