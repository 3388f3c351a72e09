import type { KnownWhy } from "../open-session.ts";
import { waitText } from "../board.ts";
import { durationText } from "../time-text.ts";
import { make, setAttribute, setText } from "./element.ts";
import type { View } from "./element.ts";

export interface ShownFacts {
  readonly known: KnownWhy | undefined;
  readonly nowMs: number;
}

type FactName = "Holder" | "Progress" | "Waits for" | "Lease" | "Queue";

interface Fact {
  readonly text: string;
  readonly tone?: "warn" | "bad";
}

const pulseTexts: Readonly<Record<string, string>> = { dead: "died", leaked: "forgot it", unknown: "no answer" };

function factsOf({ known, nowMs }: ShownFacts): Readonly<Record<FactName, Fact>> {
  const none: Fact = { text: "–" };
  if (!known) return { Holder: none, Progress: none, "Waits for": none, Lease: none, Queue: none };
  const { why, readAtMs } = known;
  const agedMs = Math.max(0, nowMs - readAtMs);
  const { holder, lease, progress, pending } = why;
  const pulse = pulseTexts[holder?.state ?? ""];
  const expiresInMs = (lease?.expiresInMs ?? 0) - agedMs;
  const isStalled = progress?.stopsInMs != null && progress.stopsInMs - agedMs <= 0;
  return {
    Holder: holder
      ? {
          text: `pid ${holder.pid} · ${holder.host}${pulse === undefined ? "" : ` · ${pulse}`}`,
          ...(pulse === undefined ? {} : { tone: "bad" }),
        }
      : { text: "nobody" },
    Progress: progress
      ? {
          text: `${progress.last} · ${durationText(progress.ageMs + agedMs)} ago`,
          ...(isStalled ? { tone: "bad" } : {}),
        }
      : none,
    "Waits for": { text: waitText(why, agedMs) || "nothing" },
    Lease: lease
      ? {
          text: `#${lease.fencingToken} · ${expiresInMs > 0 ? `${durationText(expiresInMs)} left` : "expired"}`,
          ...(expiresInMs > 0 ? {} : { tone: "warn" }),
        }
      : { text: "free" },
    Queue: { text: pending.length === 0 ? "empty" : `${pending.length} waiting` },
  };
}

/** Who holds the session, and what happens next. */
export function factsView(): View<ShownFacts> {
  const names: readonly FactName[] = ["Holder", "Progress", "Waits for", "Lease", "Queue"];
  const cells = names.map((name) => ({ name, term: make("dt", {}, name), value: make("dd") }));
  const next = make("p", { class: "next" });
  const list = make("dl", {}, ...cells.map(({ term, value }) => make("div", {}, term, value)));
  const node = make("section", { class: "facts", "aria-label": "State of the session" }, list, next);
  return {
    node,
    show(shown) {
      const facts = factsOf(shown);
      for (const { name, value } of cells) {
        setText(value, facts[name].text);
        setAttribute(value, "title", facts[name].text);
        setAttribute(value, "data-tone", facts[name].tone);
      }
      // How to begin one by HTTP is no news to somebody with a box to write in.
      setText(next, (shown.known?.why.next ?? "").replace(/;? ?[Ss]tart one with: POST \S+$/, "."));
      next.hidden = next.textContent === "";
    },
  };
}
