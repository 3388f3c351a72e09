import { systemHost } from "@turnkeeper/kernel";
import type { SeatedAgent } from "./agent-set-up.ts";
import type { Screen } from "./display/screen.ts";

/** After so long it is worth a line that this process stays to run other people's messages. */
const queueNoticeMs = 300;

/** Whoever holds a session runs what is queued on it before it leaves. */
export async function runQueue({ agent }: SeatedAgent, screen: Screen): Promise<void> {
  const cancel = systemHost.timers.after(queueNoticeMs, () => {
    screen.tell(
      "Finishing what is queued or still ends on this session before leaving; Ctrl-C leaves the rest to others.",
      screen.noteStyle.dim,
    );
  });
  await agent.idle();
  cancel();
}

/**
 * Leaves what is queued to others. A message that a turn has is not given back: it goes to its end, or is stopped now
 * when that is asked for.
 */
export function leaveQueue({ agent }: SeatedAgent, screen: Screen, options: { readonly hard: boolean }): void {
  if (!options.hard)
    screen.tell(
      "The rest is left to others. What runs goes to its end; Ctrl-C again stops it now.",
      screen.noteStyle.dim,
    );
  void agent.close({ drain: !options.hard });
}
