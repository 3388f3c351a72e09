import type { ToolOutcome } from "./conversation.ts";
import { listed, readListing } from "./listing.ts";
import { answer } from "./step.ts";
import type { Step } from "./step.ts";

interface Measured {
  readonly path: string;
  readonly byteCount: number;
}

export interface LongestTask {
  readonly folder: string;
  readonly onlyReadmes: boolean;
}

// What others made is not what the user means by "the files here".
const passedOver = new Set(["node_modules", ".git", "dist"]);
const folderCountMax = 50;
const namedCount = 3;

const join = (folder: string, name: string): string => (folder === "." ? name : `${folder}/${name}`);

/** The files of every listing so far, the longest first. */
function measure(outcomes: readonly ToolOutcome[], { onlyReadmes }: LongestTask): Measured[] {
  const listings = outcomes.filter(({ tool, isOk }) => tool === "list_files" && isOk);
  const files = listings.flatMap(({ input, text }) =>
    readListing(text).files.map(({ name, byteCount }) => ({
      name,
      path: join(String(input["path"]), name),
      byteCount,
    })),
  );
  return files
    .filter(({ name }) => !onlyReadmes || /^readme\b/i.test(name))
    .toSorted((left, right) => right.byteCount - left.byteCount);
}

/** Lists the folder, then its folders, then reads the longest file's first line; answers from what the tools said. */
export function longestFile(task: LongestTask, outcomes: readonly ToolOutcome[], offered: ReadonlySet<string>): Step {
  const top = outcomes[0];
  if (!top)
    return {
      kind: "call",
      says: `I look into ${task.folder}.`,
      calls: [{ tool: "list_files", input: { path: task.folder } }],
    };
  if (!top.isOk) return answer(`I could not look into ${task.folder}: ${top.text}`);

  const folders = readListing(top.text).folders.filter((name) => !passedOver.has(name));
  if (outcomes.length === 1 && folders.length > 0) {
    const calls = folders
      .slice(0, folderCountMax)
      .map((name) => ({ tool: "list_files", input: { path: join(task.folder, name) } }));
    return {
      kind: "call",
      says: `It holds ${folders.length} folders. I look into ${calls.length === folders.length ? "each" : `the first ${calls.length}`}.`,
      calls,
    };
  }

  const measured = measure(outcomes, task);
  const [longest, ...others] = measured;
  const noun = task.onlyReadmes ? "README" : "file";
  if (!longest) return answer(`${listed(task.folder, top.text)}\n\nI found no ${noun} in it or in its folders.`);

  const reading = outcomes.find(({ tool }) => tool === "read_file");
  if (!reading && offered.has("read_file")) {
    return {
      kind: "call",
      says: `The longest is ${longest.path}. I read how it begins.`,
      calls: [{ tool: "read_file", input: { path: longest.path, limit: 1 } }],
    };
  }
  const begins = reading?.isOk ? ` It begins: "${(reading.text.split("\n")[0] ?? "").trim().slice(0, 120)}".` : "";
  const next = others.slice(0, namedCount - 1).map(({ path, byteCount }) => `${path} (${byteCount} bytes)`);
  const failedCount =
    outcomes.filter(({ tool, isOk }) => tool === "list_files" && !isOk).length +
    Math.max(0, folders.length - folderCountMax);
  return answer(
    [
      listed(task.folder, top.text),
      "",
      `The longest ${noun} is ${longest.path} with ${longest.byteCount} bytes, of ${measured.length} in ${task.folder} and its folders.${begins}`,
      ...(next.length > 0 ? [`Next: ${next.join(", ")}.`] : []),
      ...(failedCount > 0 ? [`I could not look into ${failedCount} of the folders.`] : []),
    ].join("\n"),
  );
}
