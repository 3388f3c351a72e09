import type { Happening } from "./board.ts";
import { GatewayClient } from "./gateway-client.ts";
import { OpenBoard } from "./open-board.ts";
import { OpenSession } from "./open-session.ts";
import { browserHost } from "./page-host.ts";
import { placeOf, sessionHash } from "./place.ts";
import type { Place } from "./place.ts";
import { SessionToken } from "./session-token.ts";
import { shortcutOf } from "./shortcut.ts";
import type { ShortcutKey } from "./shortcut.ts";
import { boardView } from "./view/board-view.ts";
import { deleteDialog, shortcutDialog, tokenDialog } from "./view/dialogs.ts";
import { sessionList } from "./view/session-list.ts";
import { sessionView } from "./view/session-view.ts";
import type { SessionView } from "./view/session-view.ts";
import { shell } from "./view/shell.ts";

const host = browserHost;
const tokenQuestion = tokenDialog();
const token = new SessionToken(sessionStorage, (wasRefused) => tokenQuestion.ask(wasRefused));
const client = new GatewayClient({
  fetch: (input, init) => fetch(input, init),
  tokens: token,
  baseUrl: document.baseURI,
});
const deps = { client, host };

let isDrawn = true;
/** Everything that changed within one frame is drawn once. */
function changed(): void {
  if (!isDrawn) return;
  isDrawn = false;
  requestAnimationFrame(() => {
    isDrawn = true;
    draw();
  });
}

/** The session that was begun here and has no message yet. */
let freshId: string | undefined;

function begin(): void {
  // 64 random bits: enough to be nobody else's, short enough to type.
  freshId = `web-${host.random.id().slice(0, 16)}`;
  location.hash = sessionHash(freshId);
}

const board = new OpenBoard(deps, { changed, found: () => open?.session.hurry() });
const keys = shortcutDialog();
const deletion = deleteDialog();
const boardPage = boardView();
const list = sessionList({ begin, readMore: () => void board.readMoreSessions() });
const frame = shell({
  showKeys: () => keys.open(),
  forgetToken() {
    token.forget();
    location.reload();
  },
  tryNow: () => hurry(),
});
frame.side.append(list.node);
document.body.append(frame.node, tokenQuestion.node, keys.node, deletion.node);

let place: Place | undefined;
let open: { readonly session: OpenSession; readonly view: SessionView } | undefined;

function happened(happening: Omit<Happening, "atMs">): void {
  board.tell(happening);
  frame.announce(happening.text);
}

function goTo(next: Place): void {
  const isSame = next.kind === "session" ? open?.session.sessionId === next.sessionId : place?.kind === "board";
  if (isSame) return;
  open?.session.close();
  open = undefined;
  place = next;
  if (next.kind === "session") {
    const listener = { changed, happened, deleted: () => board.hurry() };
    const session = new OpenSession(deps, next.sessionId, listener, next.sessionId === freshId);
    open = { session, view: sessionView(session, () => void askToDelete()) };
    frame.main.replaceChildren(open.view.node);
    // On a phone the keyboard would cover what one came to read.
    if (matchMedia("(hover: hover)").matches) open.view.write();
  } else frame.main.replaceChildren(boardPage.node);
  changed();
}

async function askToDelete(): Promise<void> {
  const session = open?.session;
  if (!session || session.isNew || session.isDeleted) return;
  if (!(await deletion.ask(session.title ?? session.sessionId)) || !(await session.delete())) return;
  if (open?.session !== session) return;
  location.hash = "#/";
  frame.main.focus();
}

function draw(): void {
  const [nowMs, wallMs] = [host.clock.monotonicMs(), host.clock.wallMs()];
  const { turns, sessions, happenings, missedUntilMs } = board;
  const askingCount = (turns ?? []).filter(({ state }) => state === "asks").length;
  frame.show({
    isBoard: open === undefined,
    runningCount: turns && turns.length - askingCount,
    askingCount,
    missedInMs: missedUntilMs === undefined ? undefined : Math.max(0, missedUntilMs - nowMs),
    hasToken: token.read() !== undefined,
  });
  list.show({ sessions, turns: turns ?? [], openId: open?.session.sessionId, hasMore: board.hasMoreSessions, wallMs });
  if (open) open.view.show({ nowMs, isAway: missedUntilMs !== undefined });
  else boardPage.show({ turns, sessions, happenings, agedMs: Math.max(0, nowMs - board.readAtMs) });
}

function hurry(): void {
  board.hurry();
  open?.session.hurry();
}

function press(key: ShortcutKey): void {
  switch (key) {
    case "?":
      return keys.open();
    case "n":
      return begin();
    case "g":
      location.hash = "#/";
      return;
    case "j":
    case "k": {
      const neighbour = list.neighbour(key === "j" ? 1 : -1);
      if (neighbour !== undefined) location.hash = sessionHash(neighbour);
      return;
    }
    case "/":
      return open?.view.write();
    case "s":
    case "S":
      return open?.view.stop(key === "S");
    case "D":
      return void askToDelete();
    case "a":
      return open?.view.showAsked();
  }
}

addEventListener("keydown", (event) => {
  const target = event.target;
  const isWriting = target instanceof HTMLElement && target.matches("input, textarea, select, dialog, dialog *");
  const key = keys.isOn || event.key === "?" ? shortcutOf(event, isWriting) : undefined;
  if (key === undefined) return;
  event.preventDefault();
  press(key);
});
addEventListener("hashchange", () => goTo(placeOf(location.hash)));
addEventListener("online", hurry);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    board.pause();
    open?.session.pause();
  } else {
    board.resume();
    open?.session.resume();
  }
});
/** Ages grow while nothing else happens. */
function tick(): void {
  host.timers.after(1000, tick);
  if (!document.hidden) changed();
}
goTo(placeOf(location.hash));
tick();
