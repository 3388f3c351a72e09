/** The removal or weakening of exactly one guard, and the tests that must notice it. */
export interface Mutation {
  /** PACKAGE/NAME, unique in the table. */
  readonly id: string;
  /** From the root of the repository. */
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly find: string;
  readonly replace: string;
  /** What the guard keeps: an invariant, a rule of ARCHITECTURE §7 as `7.N`, a threat of SECURITY.md, a gateway's promise. */
  readonly guards: string;
  /** The package whose tests must notice. */
  readonly project: string;
  /** Where it stands, from the root of the repository. */
  readonly folder: string;
  /** Their files, from that folder. */
  readonly tests: readonly string[];
  /** How the title of the one case begins that must notice, where its file has too many to run them all. */
  readonly only?: string;
}

/** A mutation as its table writes it: names relative to its package, whose own tests must notice it. */
export interface MutationDraft {
  readonly id: string;
  /** From `src`, without `.ts`; of another kind from the package, with its extension. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly guards: string;
  /** From `test`, without `.test.ts`. */
  readonly tests: readonly string[];
  /** As in `Mutation`. */
  readonly only?: string;
}

export function mutationsOf(
  project: string,
  drafts: readonly MutationDraft[],
  parent: "packages" | "apps" = "packages",
): readonly Mutation[] {
  const folder = `${parent}/${project}`;
  return drafts.map((draft) => ({
    ...draft,
    id: `${project}/${draft.id}`,
    file: `${folder}/${draft.file.includes(".") ? draft.file : `src/${draft.file}.ts`}`,
    project,
    folder,
    tests: draft.tests.map((test) => `test/${test}.test.ts`),
  }));
}

/** The text without the guard. Throws where `find` does not stand in it exactly once: the code has moved on. */
export function mutated(text: string, { id, file, find, replace }: Mutation): string {
  const count = find === "" ? 0 : text.split(find).length - 1;
  if (count !== 1)
    throw new Error(
      `${id}: what it replaces stands in ${file} ${count} times, and must once. Bring the table up to the code: ${find}`,
    );
  if (find === replace) throw new Error(`${id}: it replaces its text by the same text.`);
  return text.replace(find, () => replace);
}
