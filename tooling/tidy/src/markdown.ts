/** A row of a Markdown table by column title, with the line it stands on. */
export interface TableRow {
  readonly line: number;
  readonly cells: Readonly<Record<string, string>>;
}

export interface Heading {
  readonly level: number;
  readonly title: string;
  readonly line: number;
}

/** A fenced block: its info string (`ts no-run: reason`), its text, and the heading it stands under. */
export interface FencedBlock {
  readonly info: string;
  readonly text: string;
  readonly line: number;
  readonly heading: string;
}

const headingPattern = /^(#{1,6}) +(.*?) *$/;
const fencePattern = /^(`{3,})(.*)$/;

interface Scan {
  readonly headings: readonly Heading[];
  readonly blocks: readonly FencedBlock[];
  /** Lines outside fences, by line number. */
  readonly prose: ReadonlyMap<number, string>;
}

function scan(text: string): Scan {
  const headings: Heading[] = [];
  const blocks: FencedBlock[] = [];
  const prose = new Map<number, string>();
  let open:
    | { readonly fence: string; readonly info: string; readonly line: number; readonly body: string[] }
    | undefined;
  for (const [index, content] of text.split("\n").entries()) {
    const line = index + 1;
    const fence = fencePattern.exec(content);
    if (open) {
      if (content.trim() !== open.fence) open.body.push(content);
      else {
        blocks.push({
          info: open.info,
          text: open.body.join("\n"),
          line: open.line,
          heading: headings.at(-1)?.title ?? "",
        });
        open = undefined;
      }
      continue;
    }
    if (fence) {
      open = { fence: fence[1] ?? "", info: (fence[2] ?? "").trim(), line, body: [] };
      continue;
    }
    prose.set(line, content);
    const heading = headingPattern.exec(content);
    if (heading) headings.push({ level: heading[1]?.length ?? 0, title: heading[2] ?? "", line });
  }
  return { headings, blocks, prose };
}

export function headingsOf(text: string): readonly Heading[] {
  return scan(text).headings;
}

export function fencedBlocksOf(text: string): readonly FencedBlock[] {
  return scan(text).blocks;
}

function cellsOf(line: string): readonly string[] {
  // A pipe inside a cell is written `\|`.
  return line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** The rows of the first table below the heading whose title contains `title`; none where heading or table is missing. */
export function tableUnder(text: string, title: string): readonly TableRow[] {
  const { headings, prose } = scan(text);
  const index = headings.findIndex((heading) => heading.title.includes(title));
  const heading = headings[index];
  if (!heading) return [];
  const endLine = headings.slice(index + 1).find(({ level }) => level <= heading.level)?.line ?? Infinity;
  let columns: readonly string[] | undefined;
  const rows: TableRow[] = [];
  for (const [line, content] of prose) {
    if (line <= heading.line || line >= endLine) continue;
    if (!content.startsWith("|")) {
      if (columns) break;
      continue;
    }
    const cells = cellsOf(content);
    if (!columns) columns = cells;
    else if (!cells.every((cell) => /^:?-+:?$/.test(cell))) {
      rows.push({
        line,
        cells: Object.fromEntries(columns.map((column, position) => [column, cells[position] ?? ""])),
      });
    }
  }
  return rows;
}

/** The names of a cell: comma-separated, with or without backticks; a dash means none. */
export function namesIn(cell: string): readonly string[] {
  return cell
    .split(",")
    .map((name) => name.replaceAll("`", "").trim())
    .filter((name) => name !== "" && !/^[–—-]$/.test(name));
}
