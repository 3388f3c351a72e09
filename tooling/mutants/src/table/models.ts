import { mutationsOf } from "../mutation.ts";
import type { Mutation } from "../mutation.ts";

export const modelsMutations: readonly Mutation[] = mutationsOf("models", [
  {
    id: "refreshed-token-not-adopted",
    file: "refreshable-credential",
    find: "    if (stored.access_token !== failed && this.#leftMs(stored) > marginMs) return stored;\n",
    replace: "",
    guards: "CRED-1",
    tests: ["credential-refresh"],
    only: "that somebody else has refreshed since is adopted",
  },
  {
    id: "dying-token-adopted",
    file: "refreshable-credential",
    find: "if (stored.access_token !== failed && this.#leftMs(stored) > marginMs)",
    replace: "if (stored.access_token !== failed)",
    guards: "CRED-1",
    tests: ["credential-refresh"],
    only: "that somebody else has put there and that is about to expire too",
  },
  {
    id: "refresh-without-the-lock",
    file: "refreshable-credential",
    find: "await this.#deps.lock.hold(() => this.#refreshUnderLock(failed)).catch(this.#unlockable)",
    replace: '{ kind: "held", value: await this.#refreshUnderLock(failed) } as const',
    guards: "CRED-1",
    tests: ["credential-refresh"],
    only: "of many sources that share a file and a lock",
  },
  {
    id: "refresh-before-the-mark",
    file: "refreshable-credential",
    find: "    await writeTokens(file, { ...stored, refresh_began_at }, host);\n",
    replace: "    void refresh_began_at;\n",
    guards: "CRED-1",
    tests: ["credential-refresh"],
    only: "is not begun where its answer could not be stored",
  },
  {
    id: "disowned-token-asked-for-again",
    file: "refreshable-credential",
    find: "reply.isDisowned ? { ...rest, refused_refresh_token: refresh_token } : stored",
    replace: "stored",
    guards: "CRED-1",
    tests: ["credential-refresh"],
    only: "that the provider refuses is asked for once",
  },
]);
