import { architecturePage, invariantRows } from "../architecture.ts";
import type { InvariantRow } from "../architecture.ts";
import type { Repository } from "../repository.ts";
import type { Finding, Rule } from "../rule.ts";
import { titledTests } from "../test-titles.ts";
import { shippedProjects } from "../workspace.ts";

interface Ownership {
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly isInHeader: boolean;
}

const ownsPattern = /\bOwns ([A-Z]+-\d+)/g;
const headerLinesMax = 40;

/** Where the module header ends: at the first statement. */
function headerEnd(repository: Repository, file: string): number {
  const source = repository.source(file);
  return source.statements[0]?.getStart(source) ?? source.end;
}

function ownershipsOf(repository: Repository): readonly Ownership[] {
  return shippedProjects(repository).flatMap(({ sources }) =>
    sources.flatMap((file) => {
      const end = headerEnd(repository, file);
      return [...repository.text(file).matchAll(ownsPattern)].map((match): Ownership => {
        const { line } = repository.source(file).getLineAndCharacterOfPosition(match.index);
        return { id: match[1] ?? "", file, line: line + 1, isInHeader: match.index < end };
      });
    }),
  );
}

/** Whether `file` lies in one of the packages that the table names; `state-store-*` names every adapter. */
function liesIn(file: string, owners: readonly string[]): boolean {
  return owners.some((owner) => {
    const folder = owner.includes("/") ? owner : `packages/${owner}`;
    return owner.endsWith("*") ? file.startsWith(folder.slice(0, -1)) : file.startsWith(`${folder}/`);
  });
}

function checkOwner(row: InvariantRow, ownerships: readonly Ownership[]): readonly Finding[] {
  const { id, owners, ownerFile } = row;
  const headers = ownerships.filter((one) => one.id === id);
  const [header] = headers;
  if (row.status === "planned") {
    const instead = `remove "Owns ${id}" until the guard stands, or set its status to kept in ${architecturePage}`;
    return headers.map(({ file, line }) => ({
      file,
      line,
      problem: `${id} is planned, and this header claims to keep it`,
      instead,
    }));
  }
  if (!header) {
    const where = ownerFile === "" ? owners.join(" or ") : ownerFile;
    return [
      {
        file: architecturePage,
        line: row.line,
        problem: `no module header owns ${id}`,
        instead: `write "Owns ${id}: ..." into the header of the file that keeps it (${where})`,
      },
    ];
  }
  const findings: Finding[] = [];
  for (const extra of headers.slice(1)) {
    findings.push({
      file: extra.file,
      line: extra.line,
      problem: `${header.file} owns ${id} already`,
      instead: `say "keeps ${id}, with ${header.file}" here; one id has one owner`,
    });
  }
  if (!liesIn(header.file, owners)) {
    findings.push({
      file: header.file,
      line: header.line,
      problem: `${id} belongs to ${owners.join(" or ")}`,
      instead: "move the header there, or change the table with a reason",
    });
  } else if (header.file !== ownerFile) {
    findings.push({
      file: architecturePage,
      line: row.line,
      problem: `${id} is owned by ${header.file}, the table says ${ownerFile === "" ? "nothing" : ownerFile}`,
      instead: `write ${header.file}`,
    });
  }
  return findings;
}

/** The table, the owner headers and the code name the same owners. */
export const invariantOwners: Rule = {
  title: "every invariant of ARCHITECTURE.md stands in exactly one owner header, in the file that the table names",
  check(repository) {
    const rows = invariantRows(repository);
    const ownerships = ownershipsOf(repository);
    const findings: Finding[] = [];
    const known = new Set(rows.map(({ id }) => id));
    for (const [index, row] of rows.entries()) {
      if (rows.findIndex(({ id }) => id === row.id) !== index)
        findings.push({
          file: architecturePage,
          line: row.line,
          problem: `${row.id} has two rows`,
          instead: "keep one",
        });
      if (row.status !== "kept" && row.status !== "planned") {
        findings.push({
          file: architecturePage,
          line: row.line,
          problem: `${row.id} has the status ${JSON.stringify(row.status)}`,
          instead: "write kept or planned",
        });
      }
      findings.push(...checkOwner(row, ownerships));
    }
    for (const { id, file, line, isInHeader } of ownerships) {
      if (!known.has(id))
        findings.push({
          file,
          line,
          problem: `${id} is no invariant of ${architecturePage}`,
          instead: "add its row, or name the id that is meant",
        });
      if (!isInHeader)
        findings.push({
          file,
          line,
          problem: `"Owns ${id}" stands outside the module header`,
          instead: "move it into the comment at the top of the file",
        });
      else if (headerLines(repository, file) > headerLinesMax) {
        findings.push({
          file,
          line: 1,
          problem: `the module header has ${headerLines(repository, file)} lines`,
          instead: `at most ${headerLinesMax}: keep what it owns, what it leaves to whom, and the state table`,
        });
      }
    }
    return findings;
  },
};

function headerLines(repository: Repository, file: string): number {
  return repository.text(file).slice(0, headerEnd(repository, file)).trimEnd().split("\n").length;
}

/** A rule without a test that names it is a wish; a witness without a control may have no teeth. */
export const invariantWitnesses: Rule = {
  title: "every kept invariant has a witness test and a control test, by title",
  check(repository) {
    const tests = titledTests(repository);
    const rows = invariantRows(repository);
    const findings: Finding[] = [];
    for (const { id, line, status, witness, owners } of rows) {
      if (status === "planned") continue;
      const witnesses = tests.filter(({ title }) => title.startsWith(`${id}: `));
      if (witnesses.length === 0)
        findings.push({
          file: architecturePage,
          line,
          problem: `no test title begins with "${id}: "`,
          instead: `title the test that shows it "${id}: <the rule in the present tense>"`,
        });
      else if (!witnesses.some(({ file }) => file === witness)) {
        // The owner's own test first: that is where a reader looks.
        const files = [...new Set(witnesses.map(({ file }) => file))].toSorted(
          (left, right) => Number(liesIn(right, owners)) - Number(liesIn(left, owners)),
        );
        findings.push({
          file: architecturePage,
          line,
          problem: `${id} is witnessed by ${files.join(", ")}, the table says ${witness === "" ? "nothing" : witness}`,
          instead: `write ${files[0]}`,
        });
      }
      if (!tests.some(({ title }) => title.startsWith(`${id} control: `))) {
        const instead = `add a test "${id} control: without <the guard> ..." that runs the same scenario unguarded and sees the bad outcome`;
        findings.push({ file: architecturePage, line, problem: `${id} has no control test`, instead });
      }
    }
    const known = new Set(rows.map(({ id }) => id));
    for (const { title, file } of tests) {
      const id = /^([A-Z]+-\d+)[a-z]?(?: control)?: /.exec(title)?.[1];
      if (id !== undefined && !known.has(id))
        findings.push({
          file,
          problem: `the title "${title}" names ${id}, which is no invariant of ${architecturePage}`,
          instead: "name the id that is meant, or add its row",
        });
    }
    return findings;
  },
};
