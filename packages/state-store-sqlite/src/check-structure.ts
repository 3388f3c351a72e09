import { startOwnProcess } from "./own-process.ts";
import { storeError } from "./store-failure.ts";

/**
 * Asks SQLite whether the file at `path` is sound (`quick_check`), in a process of its own; the file is only read. Empty
 * means sound; damage of the search index, which is derived, does not count. Ends that process and rejects with the
 * reason of `signal` when it is aborted; rejects with `STORE_UNAVAILABLE` where the file cannot be looked at.
 */
export function checkStructure(path: string, signal?: AbortSignal): Promise<readonly string[]> {
  return new Promise((settle, reject) => {
    signal?.throwIfAborted();
    const child = startOwnProcess("./structure-process", path);
    let faults: readonly string[] | undefined;
    let stderr = "";
    const stop = (): void => void child.kill("SIGKILL");
    signal?.addEventListener("abort", stop, { once: true });
    child.stderr?.on("data", (chunk: Buffer) => (stderr = `${stderr}${chunk.toString()}`.slice(-4000)));
    child.on("message", (message: readonly string[]) => (faults = message));
    child.on("error", reject);
    child.on("close", () => {
      signal?.removeEventListener("abort", stop);
      if (faults) settle(faults);
      else if (signal?.aborted) reject(signal.reason as Error);
      else
        reject(
          storeError("STORE_UNAVAILABLE", `Could not look at the structure of the store ${path}: ${stderr}`, { path }),
        );
    });
  });
}
