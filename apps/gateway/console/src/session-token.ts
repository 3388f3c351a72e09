import type { TokenSource } from "./gateway-client.ts";

const storageKey = "turnkeeper.token";

/** Asks whoever sits there for a token; `wasRefused`: the one before was wrong. Rejects never. */
export type AskForToken = (wasRefused: boolean) => Promise<string>;

/** What of the browser's session storage is used. */
export interface TokenStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/**
 * The token of this tab: kept in its session storage alone, which no other tab, no cookie and no disk has, and which ends
 * with the tab. Asked for once, however many requests want it.
 */
export class SessionToken implements TokenSource {
  readonly #storage: TokenStorage;
  readonly #askSomebody: AskForToken;
  #asking: Promise<void> | undefined;

  constructor(storage: TokenStorage, askSomebody: AskForToken) {
    this.#storage = storage;
    this.#askSomebody = askSomebody;
  }

  read(): string | undefined {
    return this.#storage.getItem(storageKey) ?? undefined;
  }

  ask(wasRefused: boolean): Promise<void> {
    return (this.#asking ??= this.#ask(wasRefused).finally(() => (this.#asking = undefined)));
  }

  async #ask(wasRefused: boolean): Promise<void> {
    this.forget();
    this.#storage.setItem(storageKey, await this.#askSomebody(wasRefused));
  }

  forget(): void {
    this.#storage.removeItem(storageKey);
  }
}
