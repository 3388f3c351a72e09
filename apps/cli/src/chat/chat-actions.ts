import { checkedSessionId } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import { openChosenModel, seatAgent } from "../agent-set-up.ts";
import { cliError } from "../cli-error.ts";
import { contextLines } from "../display/context-text.ts";
import { stateLines } from "../display/session-state-text.ts";
import { readSessionState } from "../session-state.ts";
import type { ChatActions } from "./chat-command.ts";
import type { ChatParts } from "./chat-parts.ts";

/** What the slash commands of this chat do. */
export function chatActions(parts: ChatParts): ChatActions {
  const { io, context, seat, screen, conversation, departure } = parts;
  const say = (line: string): void => screen.note(line);
  return {
    conversation,
    say,
    leave: () => departure.leave(),
    describeModel: () => `The model is ${conversation.seated.model.id}.`,
    changeModel: async (name) => {
      const model = await openChosenModel(io, context, { name, source: "--model" });
      const before = conversation.seated;
      conversation.seated = await seatAgent(io, context, seat, model);
      await before.close();
      say(model.note ?? `The model is ${model.id} now.`);
    },
    startNew: () => {
      conversation.sessionId = systemHost.random.id();
      say(`Session ${conversation.sessionId}`);
    },
    resume: async (id) => {
      const sessionId = checkedSessionId(id);
      const session = await seat.store.sessions.read(sessionId);
      if (!session) throw cliError("NOT_FOUND", `There is no session ${sessionId}; /new starts one.`);
      conversation.sessionId = sessionId;
      say(`Session ${sessionId}, ${session.entryCount} entries so far.`);
    },
    why: async () => {
      const state = await readSessionState({ ...seat, place: context.place }, conversation.sessionId);
      for (const line of stateLines(state, systemHost.clock.wallMs(), screen.noteStyle)) say(line);
    },
    context: async () => {
      const usage = await conversation.seated.agent.context(conversation.sessionId);
      for (const line of contextLines(usage)) say(line);
    },
  };
}
