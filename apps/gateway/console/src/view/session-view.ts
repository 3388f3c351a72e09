import type { OpenSession } from "../open-session.ts";
import { transcriptBlocks } from "../transcript-blocks.ts";
import { durationText } from "../time-text.ts";
import { composer } from "./composer.ts";
import { make, setAttribute, setText } from "./element.ts";
import type { View } from "./element.ts";
import { factsView } from "./facts-view.ts";
import { transcriptView } from "./transcript-view.ts";

export interface ShownSession {
  readonly nowMs: number;
  /** No gateway answers, which is told elsewhere. */
  readonly isAway: boolean;
}

export interface SessionView extends View<ShownSession> {
  write(): void;
  /** Goes to the first call that asks for approval. It is not answered: that is never one key. */
  showAsked(): void;
  stop(hard: boolean): void;
}

/** This near to its end, the transcript goes on scrolling with what is said. */
const nearEndPixels = 80;

function stateOf(session: OpenSession): { readonly text: string; readonly tone: string } {
  const { why } = session.known ?? {};
  if (session.isDeleted) return { text: "deleted", tone: "bad" };
  if (session.isNew) return { text: "new", tone: "info" };
  if (why?.turn?.state === "suspended") {
    const open = why.turn.asks.filter(({ decision }) => decision === null);
    const isClients = open.length > 0 && open.every(({ awaits }) => awaits === "result");
    return { text: isClients ? "waits for its client" : "asks approval", tone: "info" };
  }
  if (why?.turn?.stop) return { text: "stopping", tone: "warn" };
  if (why?.holder && why.holder.state !== "alive") return { text: "no answer", tone: "bad" };
  if (session.isRunning) return { text: "running", tone: "good" };
  return why ? { text: "idle", tone: "none" } : { text: "…", tone: "none" };
}

/** One session: who holds it, what was said, and the box to say more. */
export function sessionView(session: OpenSession, askToDelete: () => void): SessionView {
  const stop = (hard: boolean): void => void session.stop(hard);
  const write = composer({
    send(text, onBusy) {
      session.send(text, onBusy);
      isAtEnd = true;
    },
    stop,
    dismiss: (sent) => session.dismiss(sent),
  });
  const transcript = transcriptView((callId, decision) => void session.answer(callId, decision));
  const facts = factsView();
  const [title, id, pill] = [make("h1"), make("code", { class: "session-id" }), make("span", { class: "pill" })];
  const earlier = make("button", { type: "button", class: "quiet more" }, "Show earlier");
  earlier.addEventListener("click", () => void session.readEarlier());
  const welcome = make("p", { class: "empty" });
  const problem = make("p", { role: "alert" });
  const forget = make("button", { type: "button", class: "quiet" }, "Dismiss");
  forget.addEventListener("click", () => session.forgetProblem());
  const problemBar = make("div", { class: "bar", "data-tone": "bad" }, problem, forget);
  const remove = make("button", { type: "button", class: "quiet", on: { click: askToDelete } }, "Delete");
  const deleted = make(
    "p",
    { class: "bar", "data-tone": "warn", role: "status" },
    "This session was deleted. What is shown was read before; a message begins it anew.",
  );
  const lost = make("p", { class: "bar", "data-tone": "warn" });
  const scroller = make(
    "div",
    { class: "scroller", tabindex: 0, role: "region", "aria-label": "Conversation" },
    earlier,
    welcome,
    transcript.node,
  );
  const toEnd = make("button", { type: "button", class: "to-end" }, "Latest ↓");
  let isAtEnd = true;
  scroller.addEventListener(
    "scroll",
    () => {
      isAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < nearEndPixels;
      toEnd.hidden = isAtEnd;
    },
    { passive: true },
  );
  const scrollToEnd = (): void => {
    scroller.scrollTop = scroller.scrollHeight;
  };
  toEnd.addEventListener("click", scrollToEnd);
  const node = make(
    "section",
    { class: "session" },
    make("header", { class: "session-head" }, make("div", { class: "session-name" }, title, id), pill, remove),
    facts.node,
    deleted,
    lost,
    problemBar,
    make("div", { class: "conversation" }, scroller, toEnd),
    write.node,
  );
  return {
    node,
    write: () => write.focus(),
    stop,
    showAsked: () => transcript.node.querySelector<HTMLElement>('[data-state="asks"] [data-decision="allow"]')?.focus(),
    show({ nowMs, isAway }) {
      const { known, sessionId } = session;
      const state = stateOf(session);
      setText(title, session.title ?? (session.isNew ? "New session" : sessionId));
      setText(id, sessionId);
      id.hidden = title.textContent === sessionId;
      setText(pill, state.text);
      setAttribute(pill, "data-tone", state.tone);
      facts.node.hidden = session.isNew || session.isDeleted;
      deleted.hidden = !session.isDeleted;
      remove.hidden = session.isNew || session.isDeleted;
      facts.show({ known, nowMs });
      const { lostUntilMs } = session;
      lost.hidden = lostUntilMs === undefined || isAway;
      setText(
        lost,
        lostUntilMs === undefined
          ? ""
          : `The stream is gone; connecting again${lostUntilMs > nowMs + 950 ? ` in ${durationText(lostUntilMs - nowMs)}` : ""}. Nothing is lost: it goes on behind the last event.`,
      );
      problemBar.hidden = session.problem === undefined;
      setText(problem, session.problem ? `${session.problem.detail} (${session.problem.code})` : "");
      const blocks = transcriptBlocks(session.conversation, known?.why);
      transcript.show(blocks);
      welcome.hidden = blocks.length > 0 || !session.isNew;
      setText(welcome, session.isNew ? "What shall it do? The first message begins the session." : "");
      earlier.hidden = !session.hasEarlier;
      write.show({
        isRunning: session.isRunning,
        isStopping: known?.why.turn?.stop != null,
        unanswered: session.unanswered,
        queued: session.queued,
      });
      if (isAtEnd) scrollToEnd();
      toEnd.hidden = isAtEnd || scroller.scrollHeight <= scroller.clientHeight;
    },
  };
}
