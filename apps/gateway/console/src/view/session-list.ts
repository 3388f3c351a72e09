import { standingOf, standingTexts, standingTones, titleOf } from "../board.ts";
import type { RunningTurn, SessionItem } from "../gateway-json.ts";
import { sessionHash } from "../place.ts";
import { agoText } from "../time-text.ts";
import { make, setAttribute, setText } from "./element.ts";
import type { View } from "./element.ts";
import { KeyedList } from "./keyed-list.ts";

export interface ShownSessions {
  readonly sessions: readonly SessionItem[];
  readonly turns: readonly RunningTurn[];
  readonly openId: string | undefined;
  readonly hasMore: boolean;
  readonly wallMs: number;
}

interface ShownItem {
  readonly session: SessionItem;
  readonly turn: RunningTurn | undefined;
  readonly isOpen: boolean;
  readonly wallMs: number;
}

function itemView(): View<ShownItem> {
  const [dot, title, about, ago] = [
    make("span", { class: "dot", "aria-hidden": "true" }),
    make("span", { class: "item-title" }),
    make("span", { class: "item-about" }),
    make("time"),
  ];
  const link = make("a", { class: "item" }, dot, title, ago, about);
  const node = make("li", {}, link);
  return {
    node,
    show({ session, turn, isOpen, wallMs }) {
      setAttribute(link, "href", sessionHash(session.sessionId));
      setAttribute(link, "aria-current", isOpen ? "page" : undefined);
      setText(title, titleOf(session));
      setText(ago, agoText(session.updatedAt, wallMs));
      setAttribute(ago, "datetime", session.updatedAt);
      const standing = turn && standingOf(turn);
      setAttribute(link, "data-tone", standing && standingTones[standing]);
      const messages = session.entryCount === 1 ? "1 entry" : `${session.entryCount} entries`;
      const kept = session.parent ? `subagent · ${messages}` : messages;
      setText(about, standing ? standingTexts[standing] : kept);
    },
  };
}

export interface SessionListActions {
  begin(): void;
  readMore(): void;
}

export interface SessionListView extends View<ShownSessions> {
  /** The session `step` places behind the open one. */
  neighbour(step: 1 | -1): string | undefined;
}

/** The sessions of the store, the last changed first. */
export function sessionList(actions: SessionListActions): SessionListView {
  const search = make("input", {
    type: "search",
    placeholder: "Filter by title or id",
    "aria-label": "Filter sessions",
    autocomplete: "off",
    spellcheck: "false",
  });
  const items = make("ul", { class: "items" });
  const list = new KeyedList<ShownItem>(items, ({ session }) => session.sessionId, itemView);
  const more = make(
    "button",
    { type: "button", class: "quiet more", on: { click: () => actions.readMore() } },
    "Show more",
  );
  const none = make("p", { class: "empty" });
  const node = make(
    "nav",
    { class: "sessions", "aria-label": "Sessions" },
    make(
      "div",
      { class: "sessions-head" },
      search,
      make("button", { type: "button", class: "primary", on: { click: () => actions.begin() } }, "New"),
    ),
    items,
    none,
    more,
  );
  let shown: ShownSessions | undefined;
  const visible = (): readonly SessionItem[] => {
    const wanted = search.value.trim().toLowerCase();
    const all = shown?.sessions ?? [];
    return all.filter((one) => `${one.title ?? ""} ${one.sessionId}`.toLowerCase().includes(wanted));
  };
  const draw = (): void => {
    if (!shown) return;
    const { turns, openId, hasMore, wallMs } = shown;
    const bySession = new Map(turns.map((turn) => [turn.session, turn]));
    const sessions = visible();
    list.show(
      sessions.map((session) => ({
        session,
        turn: bySession.get(session.sessionId),
        isOpen: session.sessionId === openId,
        wallMs,
      })),
    );
    none.hidden = sessions.length > 0;
    setText(none, shown.sessions.length === 0 ? "No session yet." : "None of those shown fits.");
    more.hidden = !hasMore;
  };
  search.addEventListener("input", draw);
  return {
    node,
    show(next) {
      shown = next;
      draw();
    },
    neighbour(step) {
      const ids = visible().map(({ sessionId }) => sessionId);
      const at = ids.indexOf(shown?.openId ?? "");
      return at === -1 ? ids[step === 1 ? 0 : ids.length - 1] : ids[at + step];
    },
  };
}
