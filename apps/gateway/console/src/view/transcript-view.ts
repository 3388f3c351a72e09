import { sessionHash } from "../place.ts";
import type { Block, NoteBlock, WordsBlock } from "../transcript-blocks.ts";
import { callCard } from "./call-card.ts";
import type { AnswerCall } from "./call-card.ts";
import { make, setAttribute, setText } from "./element.ts";
import type { View } from "./element.ts";
import { KeyedList } from "./keyed-list.ts";
import { proseView } from "./prose-view.ts";

const speakers: Readonly<Record<WordsBlock["kind"], string>> = {
  user: "You",
  answer: "Answer",
  thought: "Thought",
  summary: "Summary of what came before",
  notice: "Notice",
};

/** Reasoning and summaries are folded: they are for whoever wants to know. */
const folded: ReadonlySet<WordsBlock["kind"]> = new Set<WordsBlock["kind"]>(["thought", "summary"]);

function wordsView({ kind }: WordsBlock): View<WordsBlock> {
  const prose = proseView("prose");
  const mark = make("p", { class: "mark" });
  const isFolded = folded.has(kind);
  const speaker = isFolded ? make("summary", {}, speakers[kind]) : make("h3", { class: "unseen" }, speakers[kind]);
  const node = isFolded
    ? make("details", { class: `said ${kind}` }, speaker, prose.node, mark)
    : make("article", { class: `said ${kind}` }, speaker, prose.node, mark);
  return {
    node,
    show({ text, isLive = false, isPartial = false, isArchived = false, isLate = false }) {
      prose.show(text);
      setAttribute(node, "data-live", isLive);
      setAttribute(node, "data-archived", isArchived);
      const told = [isPartial ? "cut off" : "", isLate ? "came late: its turn had lost the session" : ""];
      setText(mark, told.filter((one) => one !== "").join(" · "));
      mark.hidden = mark.textContent === "";
    },
  };
}

function noteView(): View<NoteBlock> {
  const [text, link] = [make("span"), make("a", {}, "Open it")];
  const node = make("p", { class: "note" }, text, " ", link);
  return {
    node,
    show(block) {
      setAttribute(node, "data-tone", block.tone);
      setText(text, block.text);
      link.hidden = block.sessionId === undefined;
      if (block.sessionId !== undefined) setAttribute(link, "href", sessionHash(block.sessionId));
    },
  };
}

function blockView(block: Block, answer: AnswerCall): View<Block> {
  switch (block.kind) {
    case "call":
      return callCard(answer) as View<Block>;
    case "note":
      return noteView() as View<Block>;
    default:
      return wordsView(block) as View<Block>;
  }
}

function isSame(one: Block, other: Block): boolean {
  const [fields, others] = [Object.entries(one), other as unknown as Readonly<Record<string, unknown>>];
  return fields.length === Object.keys(others).length && fields.every(([name, value]) => others[name] === value);
}

/** Draws what differs alone: a long conversation is shown again with every word that comes. */
function onlyChanges(view: View<Block>): View<Block> {
  let last: Block | undefined;
  return {
    node: view.node,
    show(block) {
      if (last && isSame(last, block)) return;
      last = block;
      view.show(block);
    },
  };
}

/** The conversation, top to bottom. */
export function transcriptView(answer: AnswerCall): View<readonly Block[]> {
  const node = make("div", { class: "transcript" });
  const list = new KeyedList<Block>(
    node,
    ({ key, kind }) => `${kind} ${key}`,
    (block) => onlyChanges(blockView(block, answer)),
  );
  return { node, show: (blocks) => list.show(blocks) };
}
