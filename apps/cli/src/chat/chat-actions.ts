import { checkedSessionId, readSessionState } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import { openChosenModel, seatAgent } from "../agent-set-up.ts";
import { cliError } from "../cli-error.ts";
import { contextLines } from "../display/context-text.ts";
import { sessionLines } from "../display/session-lines.ts";
import { stateLines } from "../display/session-state-text.ts";
import { counted } from "../display/count-text.ts";
import { clipped } from "../display/style.ts";
import { entryText } from "../display/transcript-text.ts";
import type { ChatActions } from "./chat-command.ts";
import type { ChatParts } from "./chat-parts.ts";

const titleWidth = 60;
/** What somebody who comes back the next day needs: the last question, and how its answer ended. */
const recalledEntriesMax = 2;
const recalledLinesMax = 12;
const listedSessionsMax = 10;

function lastLines(text: string): readonly string[] {
  const lines = text.split("\n");
  return lines.length > recalledLinesMax ? [lines[0] ?? "", "…", ...lines.slice(-recalledLinesMax)] : lines;
}

/** What the slash commands of this chat do. */
export function chatActions(parts: ChatParts): ChatActions {
  const { io, context, seat, screen, conversation, departure, use } = parts;
  const say = (line: string): void => screen.note(line);
  return {
    conversation,
    say,
    leave: () => {
      if (conversation.isRunning && !departure.isLeaving)
        screen.tell("Leaving once the turn has ended; Ctrl-C or /stop ends it.");
      departure.leave();
    },
    describeModel: () => `The model is ${conversation.seated.model.id}.`,
    changeModel: async (name) => {
      const model = await openChosenModel(io, context, { name, source: "--model" });
      const before = conversation.seated;
      conversation.seated = await seatAgent(io, context, seat, model, use);
      await before.close();
      screen.tell(model.note ?? `The model is ${model.id} now.`);
    },
    startNew: () => {
      conversation.sessionId = systemHost.random.id();
      say(`Session ${conversation.sessionId}`);
    },
    resume: async (id) => {
      const sessionId = checkedSessionId(id);
      const session = await seat.store.sessions.read(sessionId);
      if (!session)
        throw cliError("NOT_FOUND", `There is no session ${sessionId}; /resume lists those that are there.`);
      conversation.sessionId = sessionId;
      const title = session.title === undefined ? "" : `: ${clipped(session.title, titleWidth)}`;
      say(`Session ${sessionId}, ${counted(session.entryCount, "entry", "entries")} so far${title}`);
      const { entries } = await seat.store.transcript.load(sessionId, { all: true, limit: recalledEntriesMax });
      const { noteStyle, stderr } = screen;
      for (const entry of entries) for (const line of lastLines(entryText(entry, noteStyle, stderr.columns))) say(line);
      await conversation.returnToSuspended();
    },
    listSessions: async () => {
      const { sessions } = await seat.store.sessions.list({ limit: listedSessionsMax });
      if (sessions.length === 0) return say("There are no sessions yet.");
      for (const line of sessionLines(sessions, screen.stderr.columns)) say(line);
      return say("/resume ID goes on with one of them.");
    },
    why: async () => {
      const state = await readSessionState(seat, conversation.sessionId);
      for (const line of stateLines(state, { style: screen.noteStyle, place: context.place })) say(line);
    },
    context: async () => {
      const usage = await conversation.seated.agent.context(conversation.sessionId);
      for (const line of contextLines(usage)) screen.tell(line);
    },
  };
}
