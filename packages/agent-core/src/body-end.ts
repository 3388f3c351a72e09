import type { TurnInterrupt } from "@turnkeeper/interrupt";
import type { Host } from "@turnkeeper/kernel";
import { endingOf, interruptedEnding } from "./turn-ending.ts";
import type { TurnEnding, TurnPause } from "./turn-ending.ts";

/** How long a body may take to end once it was stopped softly, before the stop becomes a hard one. */
const softGraceMs = 60_000;
/** How long a body may take to end once it was stopped hard, before the turn ends without it. */
const bodyGraceMs = 10_000;

/** A soft stop that the body did not heed becomes a hard one, of the same reason and by the same. */
function harden(interrupt: TurnInterrupt): void {
  const { reason = "user-stop", by } = interrupt.current ?? {};
  const asked = by === undefined ? "The turn was asked to stop" : `The turn was asked to stop by ${by}`;
  const message = `${asked}, did not end within ${softGraceMs / 1000} s, and was stopped hard.`;
  void interrupt.interrupt({ hard: true, reason, message, ...(by === undefined ? {} : { by }) });
}

/** Settles with the body, or a while after a stop without it; its late end is then nobody's business. */
export async function bodyOrDetach(
  host: Host,
  interrupt: TurnInterrupt,
  body: Promise<TurnEnding | TurnPause>,
): Promise<TurnEnding | TurnPause> {
  const { signal, hardSignal } = interrupt;
  let cancelTimer = (): void => {};
  let detach = (): void => {};
  const detached = new Promise<TurnEnding>((resolve) => {
    detach = () => resolve(interruptedEnding(interrupt));
  });
  const arm = (): void => {
    cancelTimer();
    cancelTimer = hardSignal.aborted
      ? host.timers.after(bodyGraceMs, detach)
      : host.timers.after(softGraceMs, () => harden(interrupt));
  };
  if (signal.aborted) arm();
  signal.addEventListener("abort", arm, { once: true });
  hardSignal.addEventListener("abort", arm, { once: true });
  try {
    return await Promise.race([body, detached]);
  } catch (error) {
    return endingOf(error, interrupt);
  } finally {
    cancelTimer();
    signal.removeEventListener("abort", arm);
    hardSignal.removeEventListener("abort", arm);
  }
}
