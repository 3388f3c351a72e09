import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { systemCodeOf } from "../cli-error.ts";
import { defaultConfig, isMapping, leavesOf } from "./config.ts";
import type { Config, ConfigFinding } from "./config.ts";

/** A home's settings: what is in force, which of it the file says, and what is wrong with the file. */
export interface LoadedConfig {
  readonly file: string;
  readonly exists: boolean;
  readonly config: Config;
  /** The keys that the file sets, each with its line. */
  readonly configured: ReadonlyMap<string, number | undefined>;
  readonly findings: readonly ConfigFinding[];
  /** Rules of `tools.approval` may stand in the file, which could not be read: nobody knows what they forbid. */
  readonly hasUnreadRules: boolean;
}

/** Far above any real one; a wrong file (a log, a database) is not read into memory to find that out. */
const longestBytes = 1_048_576;

export function configFileOf(home: string): string {
  return path.join(home, "config.yaml");
}

const defaults = (file: string, exists: boolean): LoadedConfig => ({
  file,
  exists,
  config: defaultConfig,
  configured: new Map(),
  findings: [],
  hasUnreadRules: false,
});

/** The defaults in place of a file that is there and cannot be read. */
function unread(file: string, finding: ConfigFinding, text?: string): LoadedConfig {
  const hasUnreadRules = text === undefined || text.includes("approval");
  const message = hasUnreadRules ? `${finding.message}, and --yes allows nothing` : finding.message;
  return { ...defaults(file, true), findings: [{ ...finding, message }], hasUnreadRules };
}

/** The file's text, a reason why it cannot be used, or nothing where there is no file. */
async function textOf(file: string): Promise<{ readonly text: string } | { readonly problem: string } | undefined> {
  try {
    const { size } = await stat(file);
    if (size > longestBytes) return { problem: `has ${size} bytes; a configuration has at most ${longestBytes}` };
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(await readFile(file)) };
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    return { problem: error instanceof TypeError ? "is not UTF-8 text" : `cannot be read (${code ?? String(error)})` };
  }
}

interface ParsedYaml {
  readonly mapping: Readonly<Record<string, unknown>>;
  lineOf(key: string): number | undefined;
}

async function parseYaml(text: string): Promise<ParsedYaml | ConfigFinding> {
  const { LineCounter, isNode, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [error] = document.errors;
  if (error) {
    // The parser's own message names a function of its own.
    const what = error.code === "MULTIPLE_DOCS" ? "Several documents; one is known" : error.message.split("\n")[0];
    return {
      key: "",
      line: lines.linePos(error.pos[0]).line,
      message: `is not YAML (${what ?? ""}); using the defaults`,
    };
  }
  let value: unknown;
  try {
    value = document.toJS();
  } catch (thrown) {
    return {
      key: "",
      message: `is not usable YAML (${thrown instanceof Error ? thrown.message : String(thrown)}); using the defaults`,
    };
  }
  if (value === null || value === undefined) return { mapping: {}, lineOf: () => undefined };
  if (!isMapping(value)) return { key: "", line: 1, message: "must be a mapping of settings; using the defaults" };
  return {
    mapping: value,
    lineOf: (key) => {
      const node = document.getIn(key.split("."), true);
      return isNode(node) && node.range ? lines.linePos(node.range[0]).line : undefined;
    },
  };
}

/**
 * Reads a home's config.yaml. Never fails: a file that cannot be read or is no YAML gives one finding and the defaults,
 * a bad value one finding and its default.
 */
export async function loadConfig(home: string): Promise<LoadedConfig> {
  const file = configFileOf(home);
  const read = await textOf(file);
  if (read === undefined) return defaults(file, false);
  if ("problem" in read) return unread(file, { key: "", message: `${read.problem}; using the defaults` });
  const yaml = await parseYaml(read.text);
  if (!("mapping" in yaml)) return unread(file, yaml, read.text);
  const { checkConfig } = await import("./checked-config.ts");
  const { config, configured, findings } = checkConfig(yaml.mapping);
  return {
    ...defaults(file, true),
    config,
    configured: new Map([...leavesOf(configured).keys()].map((key) => [key, yaml.lineOf(key)])),
    findings: findings.map((finding) => ({ ...finding, line: yaml.lineOf(finding.key) })),
  };
}

/** A finding as the one line that stderr gets. */
export function findingLine(file: string, { key, line, message }: ConfigFinding): string {
  const place = line === undefined ? file : `${file}:${line}`;
  return key === "" ? `${place} ${message}.` : `${place}: ${key}: ${message}.`;
}
