/**
 * After each test nothing is left: no timer of a virtual host, no handle or timer that keeps this process alive, no
 * listener on the process. Loaded before every test file, so its hooks come after the file's own cleanup. (What nobody
 * waits for and then rejects ends the run as an unhandled error, with no help from here.)
 */
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, vi } from "vitest";
import { baseline, leftovers } from "./leftovers.mjs";

/** The virtual hosts of the running test. */
const hosts = [];

const kernelTesting = fileURLToPath(new URL("../../packages/kernel/src/testing/index.ts", import.meta.url));
vi.doMock(kernelTesting, async (importActual) => {
  const actual = await importActual();
  const virtualHost = (options) => {
    const host = actual.virtualHost(options);
    hosts.push(host);
    return host;
  };
  return { ...actual, virtualHost };
});

let before;
beforeEach(() => {
  hosts.length = 0;
  before = baseline();
});

afterEach(async () => {
  const timerCount = hosts.reduce((count, host) => count + host.pendingTimerCount(), 0);
  hosts.length = 0;
  const left = [
    ...(timerCount > 0 ? [`${timerCount} armed timer of a virtual host`] : []),
    ...(await leftovers(before)),
  ];
  if (left.length > 0) throw new Error(`The test has left behind: ${left.join(", ")}.`);
});
