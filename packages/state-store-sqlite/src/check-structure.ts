import { startOwnProcess } from "./own-process.ts";
import { explain, storeError } from "./store-failure.ts";
import type { Structure, Unseen } from "./structure-process.ts";

/**
 * Asks SQLite whether the file at `path` is sound (`integrity_check`), in a process of its own; the file is only read. Tells
 * damage of the search index, which is derived, apart from that of the store. Ends that process and rejects with the
 * reason of `signal` when it is aborted; rejects with the store's coded errors where the file cannot be looked at.
 */
export function checkStructure(path: string, signal?: AbortSignal): Promise<Structure> {
  return new Promise((settle, reject) => {
    signal?.throwIfAborted();
    const child = startOwnProcess("./structure-process", path);
    let answer: Structure | Unseen | undefined;
    let stderr = "";
    const stop = (): void => void child.kill("SIGKILL");
    signal?.addEventListener("abort", stop, { once: true });
    child.stderr?.on("data", (chunk: Buffer) => (stderr = `${stderr}${chunk.toString()}`.slice(-4000)));
    child.on("message", (message: Structure | Unseen) => (answer = message));
    child.on("error", reject);
    child.on("close", () => {
      signal?.removeEventListener("abort", stop);
      if (answer && "faults" in answer) settle(answer);
      else if (signal?.aborted) reject(signal.reason as Error);
      else if (answer) {
        const cause = Object.assign(new Error(answer.message), { code: answer.code });
        reject(explain(cause, { attempt: "look at the structure of", path, phase: "open" }) as Error);
      } else
        reject(
          storeError("STORE_UNAVAILABLE", `Could not look at the structure of the store ${path}: ${stderr}`, { path }),
        );
    });
  });
}
