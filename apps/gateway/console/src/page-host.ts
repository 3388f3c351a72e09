import type { Cancel, Clock, Random } from "@turnkeeper/kernel";

/** What the page's logic takes from its surroundings; in tests a virtual host of the kernel stands in for it. */
export interface PageHost {
  readonly clock: Pick<Clock, "wallMs" | "monotonicMs">;
  readonly timers: { after(ms: number, fn: () => void): Cancel };
  readonly random: Random;
}

/** 80 random bits and more, in letters that an input id may have. */
function freshId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const browserHost: PageHost = {
  clock: { wallMs: () => Date.now(), monotonicMs: () => performance.now() },
  timers: {
    after(ms, fn) {
      const timer = setTimeout(fn, ms);
      return () => clearTimeout(timer);
    },
  },
  random: { id: freshId, unit: () => Math.random() },
};
