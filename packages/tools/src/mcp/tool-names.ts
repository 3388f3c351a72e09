import { createHash } from "node:crypto";

// What every provider accepts.
const nameCharactersMax = 64;
const digestCharacters = 8;

/**
 * Names for the tools of servers: `mcp__SERVER__TOOL`, with `_` for what may not stand in a name. One that is too long,
 * or that another has already, ends in a digest of what it is, so that it is the same at every start.
 */
export class ToolNames {
  readonly #given = new Set<string>();

  give(server: string, tool: string): string {
    const plain = `mcp__${server}__${tool}`.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
    const digest = createHash("sha256").update(`${server}\0${tool}`).digest("hex").slice(0, digestCharacters);
    const short = `${plain.slice(0, nameCharactersMax - digestCharacters - 1)}_${digest}`;
    const name = plain.length > nameCharactersMax || this.#given.has(plain) ? short : plain;
    this.#given.add(name);
    return name;
  }
}
