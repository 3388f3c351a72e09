import type { Agent, EndProcesses } from "@turnkeeper/agent-core";
import type { Host } from "@turnkeeper/kernel";
import type { SharedScheduler } from "@turnkeeper/periodic-scheduler";
import type { StateStore } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import type { EventStreams } from "./event-stream.ts";
import type { LiveTurns } from "./events/live-turns.ts";
import type { ResolvedGatewayOptions } from "./gateway-options.ts";
import type { LoopDelay } from "./loop-delay.ts";
import type { Metrics } from "./metrics.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { HandedTurns } from "./openai/handed-turns.ts";
import type { StoreFailures } from "./store-failures.ts";

/** What the routes work with. */
export interface GatewayParts {
  readonly agent: Agent;
  readonly store: StateStore;
  readonly host: Host;
  readonly scheduler: SharedScheduler;
  readonly presence: ProcessPresence;
  readonly endProcesses: EndProcesses | undefined;
  /** Every turn is begun through it: it refuses before memory grows. */
  readonly calls: OpenCalls;
  readonly streams: EventStreams;
  readonly live: LiveTurns;
  /** Turns that wait for what OpenAI's clients make of their calls. */
  readonly handed: HandedTurns;
  readonly metrics: Metrics;
  readonly loopDelay: LoopDelay;
  readonly storeFailures: StoreFailures;
  readonly options: ResolvedGatewayOptions;
  /** Whether the gateway is closing: nothing new begins. */
  readonly isDraining: () => boolean;
}
