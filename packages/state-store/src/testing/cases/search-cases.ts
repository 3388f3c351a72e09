/** Finding entries by what they say. */
import assert from "node:assert/strict";
import type { StateStore } from "../../state-store.ts";
import type { SearchOptions } from "../../transcript.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { calls, draft, finishes, rejectsWith, says, session, spoken, startTurn, take } from "../scene.ts";

async function foundKeys(store: StateStore, text: string, options?: SearchOptions): Promise<readonly string[]> {
  const { hits } = await store.transcript.search(text, options);
  return hits.map(({ sessionId, entry }) => (sessionId === session ? entry.key : `${sessionId}/${entry.key}`));
}

/** Every page, read to its end. */
async function pagesOf(
  store: StateStore,
  text: string,
  options: SearchOptions,
): Promise<readonly (readonly string[])[]> {
  const pages: (readonly string[])[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.transcript.search(text, cursor === undefined ? options : { ...options, cursor });
    pages.push(page.hits.map(({ entry }) => entry.key));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return pages;
}

/** One turn of `a` that says these texts, under keys `text-0` and on. */
async function saying(store: StateStore, texts: readonly string[]): Promise<void> {
  const { grant, turnId } = await startTurn(store, "a");
  const entries = texts.map((text, index) => says(`text-${index}`, text));
  for (let at = 0; at < entries.length; at += 100)
    await store.transcript.append({ grant, turnId, entries: entries.slice(at, at + 100) });
}

export const searchCases: readonly ConformanceCase[] = [
  {
    id: "SESSION-SEARCH",
    title: "a search finds what was said, by whom ever, archived too, the last stored first, in one session or in all",
    async run({ open, host }) {
      const store = await open();
      await spoken(store);
      // The wall clock has no say in what is newer.
      host.jumpWall(-3_600_000);
      const other = await take(store, "c", { sessionId: "session-2" });
      await store.turns.begin(other.grant, "turn-c", []);
      const note = draft("note", { role: "notice", text: "an apple a day" });
      const result = draft("result", {
        role: "tool",
        callId: "call-1",
        name: "shell",
        status: "ok",
        output: "green apple",
      });
      const entries = [note, calls("call", "call-1"), result];
      await store.transcript.append({ grant: other.grant, turnId: "turn-c", entries });
      assert.deepEqual(await foundKeys(store, "apple"), ["session-2/result", "session-2/note", "b2", "a1"]);
      assert.deepEqual(await foundKeys(store, "apple", { sessionId: session }), ["b2", "a1"]);
      assert.deepEqual(await foundKeys(store, "apple", { sessionId: "session-unknown" }), []);
      assert.deepEqual(await foundKeys(store, "apple", { limit: 1 }), ["session-2/result"]);
      assert.deepEqual(await foundKeys(store, "apple", { limit: 0 }), []);
      assert.deepEqual(await foundKeys(store, "fruit"), ["summary"]);
      assert.deepEqual(await foundKeys(store, "text of input-b"), ["input/input-b"]);
      assert.deepEqual(await foundKeys(store, "banana"), []);
      const [hit] = (await store.transcript.search("plum")).hits;
      const { entries: all } = await store.transcript.load(session, { all: true });
      assert.deepEqual(
        hit?.entry,
        all.find((entry) => entry.key === "b1"),
      );
      assert.equal(hit?.snippet, "plum");
    },
  },
  {
    id: "SESSION-SEARCH-b",
    title: "a search looks for its words as they stand: no character of them is a pattern, and no text is refused",
    async run({ open }) {
      const store = await open();
      const texts = [
        "100% sure",
        "100 times",
        "snake_case",
        "snakeXcase",
        `say "hi" * NEAR(a b)`,
        "back\\slash",
        "it's",
      ];
      await saying(store, texts);
      const found = (text: string) => foundKeys(store, text);
      assert.deepEqual(await found("100%"), ["text-0"]);
      assert.deepEqual(await found("snake_case"), ["text-2"]);
      assert.deepEqual(await found(`"hi" * NEAR(`), ["text-4"]);
      assert.deepEqual(await found("back\\slash"), ["text-5"]);
      assert.deepEqual(await found("t's"), ["text-6"]);
      for (const text of [
        "",
        " \t\n",
        "\u0000",
        "\ud800",
        '"',
        '""',
        "*",
        "OR",
        "NOT x",
        "a AND",
        "(",
        "{x} : y",
        "^x",
        "-x",
      ])
        await store.transcript.search(text);
      await store.transcript.search(Array.from({ length: 3_000 }, (_, index) => `term${index}`).join(" "));
      await store.transcript.search("x".repeat(100_000));
      assert.deepEqual(await found(""), []);
      assert.deepEqual(await found(" \n"), []);
      for (const cursor of ["", "x", "-1", "0", "1.5"])
        await rejectsWith("STORE_CONTRACT", () => store.transcript.search("say", { cursor }));
    },
  },
  {
    id: "SESSION-SEARCH-c",
    title:
      "an entry is found that has every word, in any order, inside words, whatever case and form its characters have",
    async run({ open }) {
      const store = await open();
      await saying(store, [
        "error: the disk was full",
        "full stop, no error",
        "数据库连接失败，请检查东京服务器",
        "Ｆｕｌｌ width, naïve",
        "ok",
        "the README of ΟΔΟΣ",
      ]);
      const found = (text: string) => foundKeys(store, text);
      assert.deepEqual(await found("disk error full"), ["text-0"]);
      assert.deepEqual(await found("FULL"), ["text-3", "text-1", "text-0"]);
      assert.deepEqual(await found("rro"), ["text-1", "text-0"]);
      assert.deepEqual(await found("东京"), ["text-2"]);
      assert.deepEqual(await found("器"), ["text-2"]);
      assert.deepEqual(await found("失败 东京"), ["text-2"]);
      assert.deepEqual(await found("数据库"), ["text-2"]);
      assert.deepEqual(await found("nai\u0308ve"), ["text-3"]);
      assert.deepEqual(await found("k"), ["text-4", "text-0"]);
      assert.deepEqual(await found("οδος readme"), ["text-5"]);
      assert.deepEqual(await found("京东"), []);
    },
  },
  {
    id: "SESSION-SEARCH-d",
    title:
      "the pages of a search hold every hit once, of whatever age, and what is stored meanwhile is in none of them",
    async run({ open, reopen }) {
      const first = await open();
      // So many that a store which indexes behind its appends has some in its index and some not.
      const texts = Array.from(
        { length: 700 },
        (_, index) => `number ${index}${index % 7 === 0 ? " of seven 七天" : ""}`,
      );
      await saying(first, texts);
      const sevens = texts.flatMap((text, index) => (text.includes("seven") ? [`text-${index}`] : [])).toReversed();
      for (const text of ["seven", "七天", "of SEVEN number"])
        for (const limit of [7, 40, 1_000]) {
          const pages = await pagesOf(first, text, { sessionId: session, limit });
          assert.deepEqual(pages.flat(), sevens, `${text} in pages of ${limit}`);
          assert.ok(
            pages.slice(0, -1).every((page) => page.length === limit),
            `${text}: a page is not full`,
          );
        }
      const page = await first.transcript.search("seven", { limit: 50 });
      assert.equal(page.hits.length, 50);
      await first.transcript.append({
        grant: {
          sessionId: session,
          holderId: "holder-a",
          fencingToken: (await first.leases.read(session))?.fencingToken ?? 0,
        },
        turnId: "turn-a",
        entries: [says("late seven", "one more seven")],
      });
      const store = await reopen();
      const rest = await pagesOf(store, "seven", { limit: 50, cursor: page.nextCursor ?? assert.fail("no next page") });
      assert.deepEqual(rest.flat(), sevens.slice(50));
      assert.deepEqual(await foundKeys(store, "seven", { limit: 2 }), ["late seven", "text-693"]);
      assert.deepEqual(await foundKeys(store, "number 42"), [
        "text-642",
        "text-542",
        "text-442",
        ...range(429, 420),
        "text-342",
        "text-242",
        "text-142",
        "text-42",
      ]);
    },
  },
  {
    id: "SESSION-SEARCH-e",
    title: "a snippet is one line around the first word that was asked for",
    async run({ open }) {
      const store = await open();
      await saying(store, [`${"before ".repeat(50)}\n\n  the needle\tis here ${"after ".repeat(200)}`, "a needle"]);
      const [only] = (await store.transcript.search("needle is here")).hits;
      assert.match(only?.snippet ?? "", /^….*before the needle is here after .*…$/);
      assert.ok((only?.snippet.length ?? 0) <= 242, "a snippet is longer than 240 characters");
      assert.equal((await store.transcript.search("needle")).hits[0]?.snippet, "a needle");
    },
  },
  {
    id: "SESSION-SEARCH-f",
    title: "nothing of a deleted session is found, though another takes its place",
    async run({ open, reopen }) {
      const first = await open();
      await saying(
        first,
        Array.from({ length: 400 }, (_, index) => `secret ${index}`),
      );
      assert.equal((await first.transcript.search("secret", { limit: 1_000 })).hits.length, 400);
      const grant = {
        sessionId: session,
        holderId: "holder-a",
        fencingToken: (await first.leases.read(session))?.fencingToken ?? 0,
      };
      await finishes(first, "a", grant);
      assert.deepEqual(await first.sessions.delete(session), { kind: "deleted" });
      assert.deepEqual(await foundKeys(first, "secret"), []);
      const store = await reopen();
      await saying(
        store,
        Array.from({ length: 400 }, (_, index) => (index === 200 ? "another secret" : `public ${index}`)),
      );
      assert.deepEqual(await foundKeys(store, "secret"), ["text-200"]);
      assert.equal((await store.transcript.search("public", { limit: 1_000 })).hits.length, 399);
      assert.deepEqual(await foundKeys(store, "secret", { sessionId: session }), ["text-200"]);
    },
  },
];

function range(from: number, to: number): readonly string[] {
  return Array.from({ length: from - to + 1 }, (_, index) => `text-${from - index}`);
}
