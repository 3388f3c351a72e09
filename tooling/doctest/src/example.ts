import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { fencedBlocksOf } from "@turnkeeper/tidy/markdown";
import type { FencedBlock } from "@turnkeeper/tidy/markdown";

/** One TypeScript block of a page. */
export interface Example {
  /** The page, relative to the root. */
  readonly page: string;
  /** The line of the opening fence. */
  readonly line: number;
  readonly text: string;
  /** `run`: type-checked and executed. `check`: type-checked. `sketch`: left alone, with a reason. */
  readonly mode: "run" | "check" | "sketch";
  /** What the page says it prints, where a `text` block follows under the same heading. */
  readonly output?: string;
}

/** What is wrong with how a block is marked; the block itself may be fine. */
export interface BadMark {
  readonly page: string;
  readonly line: number;
  readonly problem: string;
}

export interface PageExamples {
  readonly examples: readonly Example[];
  readonly badMarks: readonly BadMark[];
}

const otherNames: ReadonlySet<string> = new Set(["typescript", "js", "javascript", "mjs", "mts"]);
const marks = { "no-run": "check", "no-check": "sketch" } as const;

/** Blocks that run unless they say otherwise: the Example of a package, its `docs`, and every block of the root's README. */
function runsAt(page: string, block: FencedBlock): boolean {
  const [folder, name] = [path.posix.basename(path.posix.dirname(page)), path.posix.basename(page)];
  return page === "README.md" || folder === "docs" || (name === "README.md" && block.heading === "Example");
}

function outputAfter(blocks: readonly FencedBlock[], index: number): string | undefined {
  const [block, next] = [blocks[index], blocks[index + 1]];
  return block && next && next.info === "text" && next.heading === block.heading ? next.text : undefined;
}

/**
 * The TypeScript blocks of a page. A block that must not run says "```ts no-run: reason", one that is no whole module
 * says "```ts no-check: reason"; all others are complete modules.
 */
export function examplesIn(page: string, markdown: string): PageExamples {
  const examples: Example[] = [];
  const badMarks: BadMark[] = [];
  const blocks = fencedBlocksOf(markdown);
  for (const [index, block] of blocks.entries()) {
    const [language = "", ...rest] = block.info.split(" ");
    const { line, text } = block;
    if (otherNames.has(language))
      badMarks.push({ page, line, problem: `is marked "${language}"; write "ts", so that it is checked` });
    if (language !== "ts") continue;
    const remark = rest.join(" ");
    const mark = /^(no-run|no-check): \S/.exec(remark)?.[1] as keyof typeof marks | undefined;
    if (remark !== "" && mark === undefined)
      badMarks.push({
        page,
        line,
        problem: `is marked "ts ${remark}"; write "ts", "ts no-run: reason" or "ts no-check: reason"`,
      });
    const output = outputAfter(blocks, index);
    const mode = mark !== undefined ? marks[mark] : runsAt(page, block) ? "run" : "check";
    examples.push({ page, line, text, mode, ...(output === undefined ? {} : { output }) });
  }
  return { examples, badMarks };
}

function isPageFolder(name: string): boolean {
  return !name.startsWith(".") && name !== "node_modules";
}

function pagesIn(root: string, folder: string): readonly string[] {
  const here = path.join(root, folder);
  if (!existsSync(here)) return [];
  return readdirSync(here)
    .filter((name) => name.endsWith(".md"))
    .map((name) => path.posix.join(folder, name));
}

/** Every page whose examples count: those of the root, and the README and the `docs` of each package and app. */
export function pagesOf(root: string): readonly string[] {
  const below = ["packages", "apps"].flatMap((folder) =>
    readdirSync(path.join(root, folder))
      .filter(isPageFolder)
      .flatMap((name) => [`${folder}/${name}/README.md`, ...pagesIn(root, `${folder}/${name}/docs`)]),
  );
  return [...pagesIn(root, "."), ...below].toSorted();
}
