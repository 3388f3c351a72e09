import type { AgentUse, Seat } from "../agent-set-up.ts";
import type { CommandContext } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import type { Screen } from "../display/screen.ts";
import type { StopLadder } from "../stop-ladder.ts";
import type { Conversation } from "./conversation.ts";
import type { Departure } from "./departure.ts";

/** What one chat works with; made once, closed once. */
export interface ChatParts {
  readonly io: CommandIo;
  readonly context: CommandContext;
  readonly seat: Seat;
  readonly screen: Screen;
  readonly conversation: Conversation;
  readonly departure: Departure;
  readonly ladder: StopLadder;
  /** What every agent of this chat is made with. */
  readonly use: AgentUse;
}
