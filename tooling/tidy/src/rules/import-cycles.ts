import { referencesOf, resolveRelative } from "../module-references.ts";
import type { Finding, Rule } from "../rule.ts";
import { isRelative, projectsOf } from "../workspace.ts";

/**
 * The cycles of a graph, each once, as the nodes in order of their edges. Depth first; a node that is entered again
 * while it is still open closes a cycle.
 */
export function cyclesOf(edges: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const enter = (node: string): void => {
    if (done.has(node)) return;
    const start = path.indexOf(node);
    if (start !== -1) {
      cycles.push(path.slice(start));
      return;
    }
    path.push(node);
    for (const next of edges.get(node) ?? []) enter(next);
    path.pop();
    done.add(node);
  };
  for (const node of edges.keys()) enter(node);
  return cycles;
}

/** Modules load each other in one direction. Type-only imports are erased, so two ports may name each other's types. */
export const noImportCycles: Rule = {
  title: "modules do not load each other in a circle",
  check(repository) {
    const edges = new Map<string, readonly string[]>();
    for (const { sources } of projectsOf(repository)) {
      for (const file of sources) {
        const loaded = referencesOf(repository.source(file)).filter(
          ({ specifier, kind }) => kind === "value" && isRelative(specifier),
        );
        edges.set(
          file,
          loaded.map(({ specifier }) => resolveRelative(file, specifier)),
        );
      }
    }
    return cyclesOf(edges).map((cycle): Finding => {
      const [file = ""] = cycle;
      return {
        file,
        problem: `a circle: ${[...cycle, file].join(" -> ")}`,
        instead: "move what both need into a module of its own, named by the noun that is missing",
      };
    });
  },
};
