import { systemHost } from "@turnkeeper/kernel";
import type { SeatedAgent } from "./agent-set-up.ts";
import type { Screen } from "./display/screen.ts";

/** After so long it is worth a line that this process stays to run other people's messages. */
const queueNoticeMs = 300;

/** Whoever holds a session runs what is queued on it before it leaves; Ctrl-C leaves the rest to others. */
export async function runQueue({ agent }: SeatedAgent, screen: Screen): Promise<void> {
  const cancel = systemHost.timers.after(queueNoticeMs, () => {
    screen.note(
      screen.noteStyle.dim("Running what is queued on this session before leaving; Ctrl-C leaves it to others."),
    );
  });
  await agent.idle();
  cancel();
}
