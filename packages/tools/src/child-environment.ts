import type { ProcessMarker } from "@turnkeeper/agent-core";

/**
 * What a command needs of the environment to find its programs, its language and the machine's trusted certificates.
 * An allow-list: a variable that somebody invents tomorrow for a key or a token stays here.
 */
const passedNames: readonly string[] = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "TERM",
  "TMPDIR",
  "TZ",
  "LANG",
  "LANGUAGE",
  "SSL_CERT_DIR",
  "SSL_CERT_FILE",
  "NODE_EXTRA_CA_CERTS",
];

/** The variables of a process, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment of a command: of `own` the allowed names, the locale and what the embedder adds by name; the marker. */
export function childEnvironment(
  own: Environment,
  extraNames: readonly string[],
  marker: ProcessMarker,
): Record<string, string> {
  const allowed = new Set([...passedNames, ...extraNames]);
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && (allowed.has(name) || name.startsWith("LC_"))) passed[name] = value;
  }
  return { ...passed, ...marker };
}
