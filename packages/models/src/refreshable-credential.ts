/**
 * A bearer token in a file that many processes read.
 *
 * Owns CRED-1: processes that share a token refresh it once, whoever needs it, and all send the new one.
 *
 * | under the lock, the file's token is      | and then                                                    |
 * | ---------------------------------------- | ----------------------------------------------------------- |
 * | another than the one that failed, usable | it is adopted; nobody is asked                              |
 * | the one that failed, or about to expire  | marked, asked for once, stored, and looked at only then     |
 * | one whose refresh was refused for good   | nobody is asked until somebody has logged in                |
 *
 * Whoever got a 401 passes the bearer that failed, so that a token somebody else refreshed meanwhile is not refreshed
 * again. A process that dies between the request and the file leaves the mark: the next one tries the same refresh
 * token, and says what happened when the provider counts it as used. Expiry is wall time, since the provider says it
 * in no other; a clock that is wrong costs a refresh too early, or one 401.
 */
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { CredentialLock, CredentialSource } from "./credential.ts";
import { choiceError } from "./errors.ts";
import type { ModelEnvironment } from "./provider-settings.ts";
import { proxyFor } from "./proxy.ts";
import { codeOf, isSendable, readTokens, unusableFile, writeTokens } from "./token-file.ts";
import type { StoredTokens } from "./token-file.ts";
import { requestTokens } from "./token-request.ts";
import type { TokenEndpoint } from "./token-request.ts";

export interface RefreshableCredentialDeps {
  readonly host: Host;
  /** Held while the file is read, the endpoint asked and the file written; one for each token file. */
  readonly lock: CredentialLock;
  /** Environment variables by name: a proxy on the way to the endpoint. Default: none. */
  readonly env?: ModelEnvironment;
}

export interface RefreshableCredentialOptions extends TokenEndpoint {
  /** The token file, mode 0600: a JSON object with `access_token`, `refresh_token` and `expires_at` (Unix seconds). */
  readonly file: string;
}

/** A token with less than this left is refreshed before it is used: an answer may take as long to begin. */
const marginMs = 120_000;

/**
 * Gives the tokens of a file, refreshed at an OAuth 2.0 endpoint (RFC 6749 §6) when they are refused or about to expire.
 *
 * Many processes with one file make one request. Reads nothing yet. Throws `MODEL_OPTION_INVALID` for an endpoint that
 * is no http(s) URL; what it gives rejects with `MODEL_CREDENTIAL_INVALID`, `MODEL_CREDENTIAL_BUSY`,
 * `MODEL_CREDENTIAL_UNAVAILABLE` (both may be tried again) or `MODEL_AUTH`.
 */
export function refreshableCredential(
  deps: RefreshableCredentialDeps,
  options: RefreshableCredentialOptions,
): CredentialSource {
  const { tokenUrl } = options;
  if (!URL.canParse(tokenUrl) || !/^https?:$/.test(new URL(tokenUrl).protocol))
    throw choiceError("MODEL_OPTION_INVALID", `Option tokenUrl must be an http:// or https:// URL, got ${tokenUrl}.`);
  return new RefreshableCredential(deps, options);
}

class RefreshableCredential implements CredentialSource {
  readonly #deps: RefreshableCredentialDeps;
  readonly #options: RefreshableCredentialOptions;
  readonly #secrets = new Set<string>();
  /** By the token that failed: many calls of one process wait for one refresh. */
  readonly #refreshes = new Map<string, Promise<StoredTokens | undefined>>();
  readonly #proxy: URL | undefined;
  #known: StoredTokens | undefined;

  constructor(deps: RefreshableCredentialDeps, options: RefreshableCredentialOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#proxy = proxyFor(new URL(options.tokenUrl), deps.env ?? {});
    if (options.clientSecret !== undefined) this.#secrets.add(options.clientSecret);
  }

  get secrets(): readonly string[] {
    return [...this.#secrets];
  }

  async token(): Promise<string> {
    const known = this.#known ?? (await this.#read());
    if (this.#leftMs(known) > marginMs) return known.access_token;
    try {
      const fresh = await this.#refreshed(known.access_token);
      return (fresh ?? known).access_token;
    } catch (error) {
      // What is about to expire has not expired: a refresh that may be tried again later need not fail this call.
      const mayWait = CodedError.is(error) && error.context["retryable"] === true && this.#leftMs(known) > 0;
      if (mayWait) return known.access_token;
      throw error;
    }
  }

  async replacement(refused: string): Promise<string | undefined> {
    const fresh = await this.#refreshed(refused);
    return fresh?.access_token === refused ? undefined : fresh?.access_token;
  }

  #leftMs({ expires_at }: StoredTokens): number {
    return expires_at === undefined ? Infinity : expires_at * 1000 - this.#deps.host.clock.wallMs();
  }

  async #read(): Promise<StoredTokens> {
    return this.#know(await readTokens(this.#options.file));
  }

  #know(tokens: StoredTokens): StoredTokens {
    this.#known = tokens;
    for (const secret of [tokens.access_token, tokens.refresh_token]) if (secret) this.#secrets.add(secret);
    return tokens;
  }

  /** Runs to its end whoever gives up waiting for it: a refresh that is broken off in the middle can lose the token. */
  #refreshed(failed: string): Promise<StoredTokens | undefined> {
    const running = this.#refreshes.get(failed);
    if (running) return running;
    const refresh = this.#hold(failed).finally(() => this.#refreshes.delete(failed));
    this.#refreshes.set(failed, refresh);
    return refresh;
  }

  async #hold(failed: string): Promise<StoredTokens | undefined> {
    const outcome = await this.#deps.lock.hold(() => this.#refreshUnderLock(failed)).catch(this.#unlockable);
    if (outcome.kind === "held") return outcome.value;
    const message = `Another process has been refreshing the token in ${this.#options.file} for too long. Try again; if it lasts, end that process.`;
    throw new CodedError("MODEL_CREDENTIAL_BUSY", message, { context: { retryable: true } });
  }

  /** What fails in the work has its code; anything else is the lock's own. */
  readonly #unlockable = (error: unknown): never => {
    if (CodedError.is(error)) throw error;
    throw unusableFile(this.#options.file, `it cannot be locked (${codeOf(error)})`, "Let this user write beside it.");
  };

  async #refreshUnderLock(failed: string): Promise<StoredTokens | undefined> {
    const { host } = this.#deps;
    const { file } = this.#options;
    const stored = await this.#read();
    if (stored.access_token !== failed && this.#leftMs(stored) > marginMs) return stored;
    if (stored["refused_refresh_token"] !== undefined) throw this.#loggedOut(stored);
    if (stored.refresh_token === undefined) return undefined;
    // The mark shows beforehand that the file can be written, and afterwards whether an answer may have been lost.
    const refresh_began_at = new Date(host.clock.wallMs()).toISOString();
    await writeTokens(file, { ...stored, refresh_began_at }, host);
    const reply = await requestTokens({ host, proxy: this.#proxy }, this.#options, stored.refresh_token);
    if (reply.kind === "unavailable") throw reply.error;
    if (reply.kind === "refused") {
      const { refresh_token, ...rest } = stored;
      // Nobody asks again with a token that the provider has disowned; it stays in the file for whoever looks into it.
      await writeTokens(file, reply.isDisowned ? { ...rest, refused_refresh_token: refresh_token } : stored, host);
      throw this.#loggedOut(stored, reply.evidence);
    }
    // Stored before it is looked at: the old refresh token may have been used up by this.
    const { refresh_began_at: _mark, ...unmarked } = stored;
    return this.#store(unmarked, reply.fields);
  }

  async #store(stored: StoredTokens, fields: Readonly<Record<string, unknown>>): Promise<StoredTokens> {
    const { host } = this.#deps;
    const { access_token, refresh_token, expires_in, ...rest } = fields;
    const { expires_at: _old, ...unexpiring } = stored;
    const isSound = typeof access_token === "string" && isSendable(access_token);
    const lifeS = Number(expires_in);
    const expires_at = Math.floor(host.clock.wallMs() / 1000 + lifeS);
    const next: StoredTokens = {
      ...unexpiring,
      ...rest,
      access_token: isSound ? access_token : stored.access_token,
      ...(typeof refresh_token === "string" && refresh_token !== "" ? { refresh_token } : {}),
      ...(Number.isFinite(expires_at) && lifeS > 0 ? { expires_at } : {}),
    };
    await writeTokens(this.#options.file, next, host);
    if (isSound) return this.#know(next);
    const message = `${this.#options.tokenUrl} answered a refresh without an access_token that a header can carry. Log in again.`;
    throw new CodedError("MODEL_AUTH", message, { context: { retryable: false } });
  }

  #loggedOut({ refresh_began_at }: StoredTokens, evidence?: string): Error {
    const { file, tokenUrl } = this.#options;
    const why = evidence === undefined ? "" : ` (${evidence})`;
    const lost =
      refresh_began_at === undefined
        ? ""
        : ` A refresh that began at ${refresh_began_at} was cut off before its answer could be stored, so the provider may count the token as used.`;
    const message = `${tokenUrl} refuses to refresh the token in ${file}${why}.${lost} Log in again.`;
    return new CodedError("MODEL_AUTH", message, { context: { retryable: false } });
  }
}
