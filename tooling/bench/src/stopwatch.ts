/** Nanoseconds on the clock that all processes of this machine share. */
export function nowNs(): number {
  return Number(process.hrtime.bigint());
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** Runs `act` so many times and answers how long each took, in microseconds. */
export async function timesOf(count: number, act: (index: number) => unknown): Promise<readonly number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    const beforeNs = nowNs();
    const result = act(index);
    // What answers at once is not charged for a turn of the microtask queue.
    if (isThenable(result)) await result;
    times.push((nowNs() - beforeNs) / 1_000);
  }
  return times;
}

/** The CPU time that `act` took in this process, all threads, in microseconds. */
export async function cpuOf(act: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await act();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
