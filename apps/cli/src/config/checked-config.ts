import { isMapping } from "./config.ts";
import type { Config, ConfigFinding } from "./config.ts";
import { configJsonSchema, readSettings } from "./config-schema.ts";
import type { ConfigIssue } from "./config-schema.ts";
import { withReadSections } from "./read-sections.ts";
import { shown } from "./shown-value.ts";

/** A file's settings with everything that is wrong in them replaced by its default, and what was wrong. */
export interface CheckedConfig {
  readonly config: Config;
  /** The part of the file that stands. */
  readonly configured: Readonly<Record<string, unknown>>;
  readonly findings: readonly ConfigFinding[];
}

type Raw = Record<string, unknown>;

function valueAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? (value as Raw)[String(key)]
        : undefined,
    raw,
  );
}

/**
 * A setting is replaced as a whole: half of a list is not what anybody wrote, and what lacks a part that it must have
 * is not repaired by taking out what is not there.
 */
function settingOf(raw: unknown, path: readonly PropertyKey[]): readonly string[] {
  const setting: string[] = [];
  for (const key of path) {
    if (Array.isArray(valueAt(raw, setting))) break;
    setting.push(String(key));
  }
  return isMissing(raw, setting) ? setting.slice(0, -1) : setting;
}

function isMissing(raw: unknown, path: readonly PropertyKey[]): boolean {
  return path.length > 0 && valueAt(raw, path) === undefined;
}

function without(raw: Raw, [key = "", ...rest]: readonly string[]): Raw {
  const { [key]: inner, ...others } = raw;
  return rest.length > 0 && isMapping(inner) ? { ...others, [key]: without(inner, rest) } : others;
}

/** What stands in the place of a setting that was wrong; a default may depend on another setting. */
function insteadOf(config: Config, parsed: Raw, path: readonly string[]): string {
  const value = valueAt(config, path);
  if (value === undefined && isMapping(valueAt(parsed, path))) return "it is left out";
  return value === undefined || value === "" || isMapping(value) ? "using the default" : `using ${shown(value)}`;
}

function knownKeysAt(path: readonly PropertyKey[]): string {
  const schema = path.reduce<unknown>(
    (section, key) => valueAt(section, ["properties", key]) ?? valueAt(section, ["additionalProperties"]),
    configJsonSchema(),
  );
  return Object.keys((valueAt(schema, ["properties"]) as Raw | undefined) ?? {}).join(", ");
}

/** A key that an issue is about; where its value is replaced, by what is told once that is known. */
type SchemaFinding = ConfigFinding & { readonly path: readonly string[]; readonly isReplaced: boolean };

const expectationOf = ({ message }: Pick<ConfigIssue, "message">): string => message.replace(/^[A-Z][\w ]*: /, "");

function wrongValue(raw: Raw, issue: ConfigIssue): string {
  const { path } = issue;
  if (issue.code === "invalid_key") {
    const [ofName] = issue.issues;
    return `${expectationOf(ofName ?? issue)}, got ${shown(path.at(-1))}`;
  }
  const value = valueAt(raw, path);
  if (value !== undefined) return `${expectationOf(issue)}, got ${shown(value)}`;
  return `needs ${String(path.at(-1))}`;
}

function findingsOf(raw: Raw, issue: ConfigIssue): readonly SchemaFinding[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const path = [...issue.path.map(String), key];
      const message = `is unknown and ignored; known here: ${knownKeysAt(issue.path)}`;
      return { path, key: path.join("."), message, isReplaced: false };
    });
  }
  const path = settingOf(raw, issue.path);
  return [{ path, key: path.join("."), message: wrongValue(raw, issue), isReplaced: true }];
}

/**
 * Checks a parsed config.yaml and repairs it by removal: every key is optional, so what is wrong or unknown is taken
 * out, told once, and its default stands. Never throws.
 */
export function checkConfig(parsed: Readonly<Record<string, unknown>>): CheckedConfig {
  const findings = new Map<string, ConfigFinding>();
  const replaced = new Map<string, readonly string[]>();
  let raw: Raw = withReadSections(parsed, findings);
  for (;;) {
    const read = readSettings(raw);
    if ("config" in read) {
      const { config } = read;
      const told = [...findings.values()].map((finding): ConfigFinding => {
        const path = replaced.get(finding.key);
        if (!path) return finding;
        const whole = path.join(".");
        const instead = whole === finding.key ? insteadOf(config, parsed, path) : `${whole} is left out`;
        return { ...finding, message: `${finding.message}; ${instead}` };
      });
      return { config, configured: raw, findings: told };
    }
    for (const { path, key, message, isReplaced } of read.issues.flatMap((issue) => findingsOf(raw, issue))) {
      // What does without a part that was wrong is no second fault: the part's finding says what came of it.
      const causes = isReplaced ? [...replaced.keys()].filter((inner) => inner.startsWith(`${key}.`)) : [];
      for (const cause of causes) replaced.set(cause, path);
      if (causes.length === 0 && !findings.has(key)) {
        findings.set(key, { key, message });
        if (isReplaced) replaced.set(key, path);
      }
      raw = path.length === 0 ? {} : without(raw, path);
    }
  }
}
