import { resolveTurnLivenessSettings } from "@turnkeeper/turn-liveness";
import { toolApproval, toolNamePattern } from "./approval-schema.ts";
import { defaultConfig, isMapping, toolNames } from "./config.ts";
import type { ConfigFinding } from "./config.ts";
import { shown } from "./shown-value.ts";

type Raw = Readonly<Record<string, unknown>>;
type Findings = Map<string, ConfigFinding>;

/**
 * Reads `agent.turn_liveness` as its owner does (numeric strings count, what is wrong is told there), so that only
 * unknown keys are left for the schema to find.
 */
function withLiveness(parsed: Raw, findings: Findings): Raw {
  const { agent: section } = parsed;
  const raw = isMapping(section) ? section["turn_liveness"] : undefined;
  if (!isMapping(section) || raw === undefined) return parsed;
  const settings = resolveTurnLivenessSettings(parsed, (message) => {
    const [, key = "agent.turn_liveness", told = message] = /^(agent\.[\w.]+) (.*)$/.exec(message) ?? [];
    findings.set(key, { key, message: told.replace(/\.$/, "") });
  });
  const { turn_liveness: _wrong, ...others } = section;
  if (!isMapping(raw)) return { ...parsed, agent: others };
  const timeoutS = settings === "off" ? 0 : settings.timeoutMs / 1000;
  const pollS = settings === "off" ? defaultConfig.agent.turn_liveness.poll_s : settings.pollMs / 1000;
  const read = {
    ...raw,
    ...("timeout_s" in raw ? { timeout_s: timeoutS } : {}),
    ...("poll_s" in raw ? { poll_s: pollS } : {}),
  };
  return { ...parsed, agent: { ...others, turn_liveness: read } };
}

/**
 * Takes names that are no tool's out of `tools.enabled`, one by one. The list is a restriction: a slip in one name must
 * not fall back to a default that hands out what was left out on purpose.
 */
function withKnownTools(parsed: Raw, findings: Findings): Raw {
  const { tools: section } = parsed;
  const enabled = isMapping(section) ? section["enabled"] : undefined;
  if (!isMapping(section) || !Array.isArray(enabled)) return parsed;
  const isKnown = (name: unknown): boolean => toolNames.some((known) => known === name);
  const unknown = enabled.filter((name) => !isKnown(name));
  if (unknown.length === 0) return parsed;
  const key = "tools.enabled";
  const names = unknown.map(shown).join(", ");
  findings.set(key, { key, message: `has no tool named ${names}, which is ignored; known: ${toolNames.join(", ")}` });
  return { ...parsed, tools: { ...section, enabled: enabled.filter(isKnown) } };
}

/**
 * Closes what a rule of `tools.approval` is about when the rule is wrong. A rule may be there to forbid: without it a
 * default would ask for, or allow, what nobody meant to.
 */
function withSoundApproval(parsed: Raw, findings: Findings): Raw {
  const { tools: section } = parsed;
  const rules = isMapping(section) ? section["approval"] : undefined;
  if (!isMapping(section) || !isMapping(rules)) return parsed;
  const sound = Object.entries(rules).map(([name, rule]): readonly [string, unknown] => {
    const isSound = toolNamePattern.test(name) && toolApproval.safeParse(rule).success;
    if (isSound) return [name, rule];
    const key = `tools.approval.${name}`;
    const expected = "expected ask, allow, deny, or lists of patterns under deny, ask, allow, and otherwise";
    findings.set(key, { key, message: `${expected}, got ${shown(rule)}; such calls are denied` });
    return [toolNamePattern.test(name) ? name : "*", "deny"];
  });
  return { ...parsed, tools: { ...section, approval: Object.fromEntries(sound) } };
}

/** The sections that are not simply checked: what another package reads, and what forbids. Each fault is told. */
export function withReadSections(parsed: Raw, findings: Findings): Raw {
  return withSoundApproval(withKnownTools(withLiveness(parsed, findings), findings), findings);
}
