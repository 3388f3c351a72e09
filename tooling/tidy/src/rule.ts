import type { Repository } from "./repository.ts";

/** One place that breaks a rule: what is wrong there, and what to write in its place. */
export interface Finding {
  readonly file: string;
  /** Counted from 1; absent when the file as a whole is meant. */
  readonly line?: number;
  readonly problem: string;
  readonly instead: string;
}

/** A house rule: its title is the rule itself, in the present tense. */
export interface Rule {
  readonly title: string;
  check(repository: Repository): readonly Finding[];
}

/** The finding as one line for people; editors make `file:line` clickable. */
export function describeFinding({ file, line, problem, instead }: Finding): string {
  return `${file}${line === undefined ? "" : `:${line}`}: ${problem}; ${instead}`;
}
