import { standingOf, standingTexts, standingTones, titleOf, waitText } from "../board.ts";
import type { Happening } from "../board.ts";
import type { RunningTurn, SessionItem } from "../gateway-json.ts";
import { sessionHash } from "../place.ts";
import { durationText } from "../time-text.ts";
import { make, setAttribute, setText } from "./element.ts";
import type { View } from "./element.ts";
import { KeyedList } from "./keyed-list.ts";

export interface ShownBoard {
  readonly turns: readonly RunningTurn[] | undefined;
  readonly sessions: readonly SessionItem[];
  readonly happenings: readonly Happening[];
  /** How old what is known of the turns is. */
  readonly agedMs: number;
}

interface ShownTurn {
  readonly turn: RunningTurn;
  readonly title: string;
  readonly agedMs: number;
}

const columns = ["Session", "State", "Holder", "Progress", "Waits for", "Stops in", "Lease", "Queue"] as const;

function stopsText({ progress }: RunningTurn, agedMs: number): string {
  if (progress?.stopsInMs == null) return "–";
  const leftMs = progress.stopsInMs - agedMs;
  return leftMs > 0 ? durationText(leftMs) : "now";
}

function turnRow(): View<ShownTurn> {
  const link = make("a", { class: "row-link" });
  const pill = make("span", { class: "pill" });
  const cells = columns.map((label) => make("td", { "data-label": label }));
  cells[0]?.append(link);
  cells[1]?.append(pill);
  const node = make("tr", {}, ...cells);
  return {
    node,
    show({ turn, title, agedMs }) {
      setText(link, title);
      setAttribute(link, "href", sessionHash(turn.session));
      setAttribute(link, "title", turn.session);
      const standing = standingOf(turn);
      setText(pill, standingTexts[standing]);
      setAttribute(pill, "data-tone", standingTones[standing]);
      const { progress, expiresInMs } = turn;
      const leftMs = (expiresInMs ?? 0) - agedMs;
      const texts = [
        turn.state === "asks" || turn.state === "awaits-result" ? "nobody" : `pid ${turn.pid} · ${turn.host}`,
        progress ? `${progress.last} · ${durationText(progress.ageMs + agedMs)}` : "–",
        waitText(turn, agedMs) || "–",
        stopsText(turn, agedMs),
        expiresInMs === null ? "–" : `#${turn.fencingToken} · ${leftMs > 0 ? durationText(leftMs) : "expired"}`,
        turn.pendingCount === 0 ? "–" : String(turn.pendingCount),
      ];
      for (const [index, text] of texts.entries()) {
        const cell = cells[index + 2];
        if (!cell) continue;
        setText(cell, text);
        setAttribute(cell, "data-none", text === "–");
      }
    },
  };
}

const clockText = (wallMs: number): string => new Date(wallMs).toLocaleTimeString("en-GB");

interface ShownHappening {
  readonly happening: Happening;
  readonly title: string | undefined;
}

function happeningRow(): View<ShownHappening> {
  const [time, text, link] = [make("time"), make("span", { class: "happening-text" }), make("a")];
  const node = make("li", {}, time, link, text);
  return {
    node,
    show({ happening: { atMs, tone, text: said, sessionId }, title }) {
      setAttribute(node, "data-tone", tone);
      setText(time, clockText(atMs));
      setAttribute(time, "datetime", new Date(atMs).toISOString());
      setText(text, said);
      link.hidden = sessionId === undefined;
      setText(link, title ?? sessionId ?? "");
      if (sessionId !== undefined) setAttribute(link, "href", sessionHash(sessionId));
    },
  };
}

/** Every turn that runs, and what happened lately. */
export function boardView(): View<ShownBoard> {
  const body = make("tbody");
  const rows = new KeyedList<ShownTurn>(body, ({ turn }) => turn.turnId, turnRow);
  const table = make(
    "table",
    { class: "turns" },
    make("caption", { class: "unseen" }, "Running turns"),
    make("thead", {}, make("tr", {}, ...columns.map((label) => make("th", { scope: "col" }, label)))),
    body,
  );
  const empty = make("p", { class: "empty" });
  const log = make("ol", { class: "happenings", role: "log", "aria-live": "off", "aria-labelledby": "happened" });
  const keys = new WeakMap<Happening, string>();
  let count = 0;
  const keyOf = (happening: Happening): string => {
    const key = keys.get(happening) ?? String(count++);
    keys.set(happening, key);
    return key;
  };
  const happened = new KeyedList<ShownHappening>(log, ({ happening }) => keyOf(happening), happeningRow);
  const quiet = make(
    "p",
    { class: "empty" },
    "Nothing yet. Stalls, refusals and ends of turns are told here as they happen.",
  );
  const counted = make("span", { class: "count" });
  const node = make(
    "div",
    { class: "board" },
    make("h1", {}, "Running turns ", counted),
    make("div", { class: "turns-frame" }, table),
    empty,
    make("h2", { id: "happened" }, "What happened"),
    log,
    quiet,
  );
  return {
    node,
    show({ turns, sessions, happenings, agedMs }) {
      const titles = new Map(sessions.map((session) => [session.sessionId, titleOf(session)]));
      rows.show((turns ?? []).map((turn) => ({ turn, title: titles.get(turn.session) ?? turn.session, agedMs })));
      table.hidden = (turns ?? []).length === 0;
      empty.hidden = !table.hidden;
      setText(empty, turns ? "No turn runs. Choose a session, or begin a new one." : "Looking…");
      setText(counted, turns && turns.length > 0 ? String(turns.length) : "");
      happened.show(happenings.map((happening) => ({ happening, title: titles.get(happening.sessionId ?? "") })));
      quiet.hidden = happenings.length > 0;
    },
  };
}
