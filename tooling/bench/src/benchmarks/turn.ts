import { createAgent, withTurn } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import type { Benchmark, Case, Effort } from "../benchmark.ts";
import { countFullCommits } from "../commit-counter.ts";
import type { CommitCounter } from "../commit-counter.ts";
import type { Folder } from "../folder.ts";
import { instantModel } from "../instant-model.ts";
import { openRaw, openTransaction } from "../raw-database.ts";
import { cpuOf, timesOf } from "../stopwatch.ts";

const limit = "raw, three FULL commits";
const inMemory = "raw, the same three without the disk";
const agentRun = "agent.run";
const ownLoop = "withTurn";

/** Sessions in rotation, so that their histories stay short. */
const sessionOf = (index: number): string => `session-${index % 32}`;
const turnCount = ({ isQuick }: Effort): number => (isQuick ? 30 : 60);

async function turnCase(
  facts: Pick<Case, "name" | "role" | "close">,
  effort: Effort,
  commits: CommitCounter,
  turn: (index: number) => unknown,
): Promise<Case> {
  const count = turnCount(effort);
  const measure = async (): Promise<Record<string, readonly number[]>> => {
    let times: readonly number[] = [];
    commits.take();
    const cpuUs = await cpuOf(async () => {
      times = await timesOf(count, turn);
    });
    return {
      wall: times.map((timeUs) => timeUs / 1_000),
      CPU: [cpuUs / 1_000 / count],
      "FULL commits": [commits.take() / count],
    };
  };
  // Every session exists and the code is compiled before anything is measured.
  await measure();
  return { ...facts, measure };
}

/** The input is stored; a grant begins its turn; the answer, the end of turn and input, and the release. */
function rawTurn(
  path: string,
  synchronous: "NORMAL" | "FULL",
): { readonly turn: (index: number) => void; readonly close: () => Promise<void> } {
  const database = openRaw(path, synchronous);
  database.exec(
    `CREATE TABLE lease (session_id TEXT PRIMARY KEY, holder TEXT, token INTEGER NOT NULL);
     CREATE TABLE input (input_id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, text TEXT NOT NULL, turn_id TEXT, ended_as TEXT);
     CREATE TABLE turn (turn_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, outcome TEXT);
     CREATE TABLE message (message_id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, turn_id TEXT NOT NULL, body TEXT NOT NULL);`,
  );
  const offer = database.prepare("INSERT INTO input (session_id, text) VALUES (?, ?)");
  const take = database.prepare("UPDATE input SET turn_id = ? WHERE input_id = ?");
  const settle = database.prepare("UPDATE input SET ended_as = 'answered' WHERE input_id = ?");
  const begin = database.prepare("INSERT INTO turn VALUES (?, ?, NULL)");
  const end = database.prepare("UPDATE turn SET outcome = 'answered' WHERE turn_id = ?");
  const say = database.prepare("INSERT INTO message (session_id, turn_id, body) VALUES (?, ?, ?)");
  const grant = database.prepare(
    "INSERT INTO lease VALUES (?, 'holder', 1) ON CONFLICT (session_id) DO UPDATE SET holder = 'holder', token = token + 1",
  );
  const free = database.prepare("UPDATE lease SET holder = NULL WHERE session_id = ?");
  const transaction = openTransaction(database);
  let turnNumber = 0;
  const turn = (index: number): void => {
    const [sessionId, turnId] = [sessionOf(index), `turn-${++turnNumber}`];
    const inputId = transaction(() => offer.run(sessionId, "How are you?").lastInsertRowid);
    transaction(() => {
      grant.run(sessionId);
      begin.run(turnId, sessionId);
      take.run(turnId, inputId);
      say.run(sessionId, turnId, JSON.stringify({ role: "user", text: "How are you?" }));
    });
    transaction(() => {
      say.run(sessionId, turnId, JSON.stringify({ role: "assistant", text: "All well. ".repeat(10) }));
      end.run(turnId);
      settle.run(inputId);
      free.run(sessionId);
    });
  };
  return { turn, close: async () => void database.close() };
}

async function open(folder: Folder, effort: Effort): Promise<readonly Case[]> {
  const host = systemHost;
  const commits = countFullCommits();
  const raw = rawTurn(folder.fresh("raw.db"), "FULL");
  const rawNormal = rawTurn(folder.fresh("normal.db"), "NORMAL");
  const agentStore = await openSqliteStore(folder.fresh("agent.db"), { host });
  const loopStore = await openSqliteStore(folder.fresh("loop.db"), { host });
  // One presence is enough: its socket belongs to the process.
  const presence = await openProcessPresence({ host }, { socketFolder: folder.fresh("sockets") });
  const agent = await createAgent({ store: agentStore, model: instantModel(), presence });
  const closeAgent = async (): Promise<void> => {
    await agent.close();
    await agentStore.close();
  };
  const closeLoop = async (): Promise<void> => {
    await loopStore.close();
    await presence.close();
    commits[Symbol.dispose]();
  };
  const runAgent = async (index: number): Promise<void> => {
    const { outcome } = await agent.run(sessionOf(index), "How are you?").result;
    if (outcome !== "answered") throw new Error(`The turn was ${outcome}.`);
  };
  const runLoop = async (index: number): Promise<void> => {
    const result = await withTurn({ store: loopStore, presence }, sessionOf(index), "How are you?", async (turn) => {
      const body = { role: "assistant", parts: [{ type: "text", text: "All well." }] } as const;
      await turn.append([{ key: `${turn.turnId}/answer`, body }]);
    });
    if (result.kind !== "answered") throw new Error(`The turn was ${result.finished.outcome}.`);
  };
  return [
    await turnCase({ name: limit, role: "limit", close: raw.close }, effort, commits, raw.turn),
    await turnCase({ name: inMemory, role: "limit", close: rawNormal.close }, effort, commits, rawNormal.turn),
    await turnCase({ name: agentRun, role: "ours", close: closeAgent }, effort, commits, runAgent),
    await turnCase({ name: ownLoop, role: "ours", close: closeLoop }, effort, commits, runLoop),
  ];
}

export const turn: Benchmark = {
  name: "turn",
  title: "a whole turn, one step and no tools, with a model that answers at once; withTurn appends once on top",
  metrics: [
    { name: "wall", unit: "ms", limit },
    { name: "CPU", unit: "ms", limit },
    { name: "FULL commits", unit: "a turn", limit },
  ],
  goals: [
    { of: agentRun, metric: "FULL commits", atMost: 3, meaning: "a turn", isCpuBound: true },
    { of: agentRun, metric: "CPU", atMost: 3, meaning: "milliseconds" },
    { of: ownLoop, metric: "CPU", atMost: 3, meaning: "milliseconds" },
    // The same on a machine of any load: there a millisecond of processor time is not what it is on a quiet one.
    ...[agentRun, ownLoop].map((of) => ({
      of,
      metric: "CPU",
      against: { name: inMemory },
      atMost: 50,
      meaning: "3 ms where that takes 60 µs",
      isCpuBound: true,
    })),
  ],
  roundCount: ({ isQuick }) => (isQuick ? 5 : 7),
  open,
};
