import { namesIn, tableUnder } from "./markdown.ts";
import type { Repository } from "./repository.ts";

/** The page that the rules read, so that what people read and what is enforced cannot drift apart. */
export const architecturePage = "ARCHITECTURE.md";

/** A row of the table of packages. */
export interface PackageRow {
  readonly line: number;
  readonly key: string;
  /** Sibling packages whose values may be imported, or `everything`. */
  readonly runTime: readonly string[] | "everything";
  /** Sibling packages of which only types may be imported. */
  readonly typesOnly: readonly string[];
  /** Packages of other authors, or `everything`. */
  readonly external: readonly string[] | "everything";
}

function allowance(cell: string): readonly string[] | "everything" {
  return cell.trim() === "everything" ? "everything" : namesIn(cell);
}

/** What each package may import; the key `tooling/*` stands for every project below tooling. */
export function packageRows(repository: Repository): readonly PackageRow[] {
  if (!repository.has(architecturePage)) return [];
  return tableUnder(repository.text(architecturePage), "Packages and import direction").flatMap(({ line, cells }) =>
    namesIn(cells["package"] ?? "").map((key) => ({
      line,
      key,
      runTime: allowance(cells["may import at run time"] ?? ""),
      typesOnly: namesIn(cells["types only"] ?? ""),
      external: allowance(cells["from npm"] ?? ""),
    })),
  );
}

/** A row of the table of invariants. */
export interface InvariantRow {
  readonly line: number;
  readonly id: string;
  /** Packages that share the rule; `state-store-*` stands for every adapter. */
  readonly owners: readonly string[];
  /** The file whose header says `Owns ID:`; empty while planned. */
  readonly ownerFile: string;
  /** The file with the witness test. */
  readonly witness: string;
  /** `kept`: owned and witnessed. `planned`: belongs to later work, so nobody may claim to own it yet. */
  readonly status: string;
}

export function invariantRows(repository: Repository): readonly InvariantRow[] {
  if (!repository.has(architecturePage)) return [];
  return tableUnder(repository.text(architecturePage), "Invariants").map(({ line, cells }) => ({
    line,
    id: (cells["id"] ?? "").replaceAll("`", ""),
    owners: namesIn(cells["owner package"] ?? ""),
    ownerFile: namesIn(cells["owner file"] ?? "")[0] ?? "",
    witness: namesIn(cells["witness"] ?? "")[0] ?? "",
    status: cells["status"] ?? "",
  }));
}

/** A numbered rule of the protocol. */
export interface ProtocolRule {
  readonly line: number;
  /** `7.12`. */
  readonly number: string;
  /** False where the page says that the work it describes has not begun. */
  readonly isBegun: boolean;
}

/** The rules `- **7.1** …`, and the sentence "Rules 7.5 …, and 7.23 … describe work that has not begun" below them. */
export function protocolRules(repository: Repository): readonly ProtocolRule[] {
  if (!repository.has(architecturePage)) return [];
  const text = repository.text(architecturePage);
  const sentence = /^Rules? (7\.\d+[^]*?) has not begun/m.exec(text)?.[1] ?? "";
  const notBegun = new Set([...sentence.matchAll(/7\.\d+/g)].map(([number]) => number));
  return text.split("\n").flatMap((content, index): ProtocolRule[] => {
    const number = /^- \*\*(7\.\d+)\*\* /.exec(content)?.[1];
    return number === undefined ? [] : [{ line: index + 1, number, isBegun: !notBegun.has(number) }];
  });
}
