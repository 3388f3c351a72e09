import ts from "typescript";
import type { Repository } from "../repository.ts";
import type { Rule } from "../rule.ts";
import { shippedProjects } from "../workspace.ts";
import { exportedValues } from "./complete-readme.ts";

/** Lines that hold a token: without blank lines and comments. */
export function codeLineCount(source: ts.SourceFile): number {
  const lines = new Set<number>();
  const visit = (node: ts.Node): void => {
    if (ts.isJSDoc(node)) return;
    const children = node.getChildren(source);
    if (children.length > 0) {
      for (const child of children) visit(child);
      return;
    }
    const start = node.getStart(source);
    if (start >= node.end) return;
    const first = source.getLineAndCharacterOfPosition(start).line;
    const last = source.getLineAndCharacterOfPosition(node.end).line;
    for (let line = first; line <= last; line++) lines.add(line);
  };
  visit(source);
  return lines.size;
}

const kernelLinesMax = 300;

/** Everything stands on kernel, so it stays small enough to be read in one sitting. */
export const kernelStaysSmall: Rule = {
  title: `kernel has at most ${kernelLinesMax} lines of code`,
  check(repository) {
    const kernel = shippedProjects(repository).find(({ key }) => key === "kernel");
    if (!kernel) return [];
    const count = kernel.sources.reduce((sum, file) => sum + codeLineCount(repository.source(file)), 0);
    if (count <= kernelLinesMax) return [];
    return [
      {
        file: `${kernel.folder}/src`,
        problem: `holds ${count} lines of code`,
        instead: "move what is not a port of time, chance or errors to the package that needs it",
      },
    ];
  },
};

const lengthToAskAt = 300;
const faceNamesToAskAt = 12;

/** Not a rule: places where a reader may ask "which noun is missing?", printed by the test and never failing it. */
export function sizeNotes(repository: Repository): readonly string[] {
  const notes: string[] = [];
  for (const { sources, key, kind } of shippedProjects(repository)) {
    for (const file of sources) {
      const count = repository.text(file).trimEnd().split("\n").length;
      if (count > lengthToAskAt) notes.push(`${file} has ${count} lines: which noun is missing?`);
    }
    const face = sources.find((file) => file.endsWith(`${key}/src/index.ts`));
    if (kind !== "packages" || face === undefined) continue;
    const values = exportedValues(repository.source(face));
    if (values.length > faceNamesToAskAt)
      notes.push(`${key} exports ${values.length} values: is each of them for callers?`);
  }
  return notes;
}
