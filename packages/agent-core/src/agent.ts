import { CodedError, systemHost } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import { sharedScheduler } from "@turnkeeper/periodic-scheduler";
import type { PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { OfferResult, RequestStopResult, Runner, StateStore } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { followInput } from "./follow.ts";
import { resolveAgentOptions } from "./options.ts";
import type { AgentOptions, ResolvedAgentOptions } from "./options.ts";
import { deadGrantOf } from "./reaper.ts";
import { checkedSessionId } from "./session-id.ts";
import { endOfStoreFailure, SessionRunner } from "./session-runner.ts";
import type { KnownContext, RunnerDeps } from "./session-runner.ts";
import { requestStop } from "./stop.ts";
import { toolSet } from "./tool-input.ts";
import type { AnyTool } from "./tool.ts";
import { TurnCall } from "./turn-call.ts";
import type { RunOptions, StopOptions, Turn } from "./turn-call.ts";

export interface AgentDeps {
  readonly store: StateStore;
  readonly model: ResolvedModel;
  readonly tools?: readonly AnyTool[];
  /** Default: the system's clock, timers and randomness. */
  readonly host?: Host;
  /** Default: the process's shared scheduler. */
  readonly scheduler?: PeriodicScheduler;
  /**
   * How other processes tell whether this one lives. Default: opened for this agent, without a socket; then they rely
   * on pid and start time. Pass one with a socket folder beside the store's file.
   */
  readonly presence?: ProcessPresence;
  /** Ends the processes that a dead turn left on this host; `killMarkedProcesses` of the tools package. */
  readonly killProcessesOf?: (turnId: string) => Promise<void>;
}

export interface Agent extends AsyncDisposable {
  /**
   * Runs one input on a session: accepted means stored, and a stored input has exactly one durable end. Answers at once
   * with the call; its events and its result follow. Throws `SESSION_ID_INVALID`, `INPUT_EMPTY`, `INPUT_TOO_LARGE` or
   * `INPUT_ID_INVALID` for bad arguments, and nothing is stored then.
   */
  run(sessionId: string, input: string, options?: RunOptions): Turn;
  /** Asks the session's running turn to stop, in whatever process it runs. Answers at once. */
  stop(sessionId: string, options?: StopOptions): Promise<RequestStopResult>;
  /** Resolves once every turn and every queued input that this agent must run has ended. */
  idle(): Promise<void>;
  /** Stops what runs as `shutdown`, leaves what waits to others, and lets go of everything. Safe to repeat. */
  close(): Promise<void>;
}

const inputIdPattern = /^[\x21-\x7e]{1,200}$/;

function checkedInput(text: string, options: ResolvedAgentOptions): string {
  if (text.trim() === "") throw new CodedError("INPUT_EMPTY", "The message is empty; say something.");
  const bytes = Buffer.byteLength(text);
  if (bytes > options.inputBytesMax) {
    throw new CodedError("INPUT_TOO_LARGE", `The message has ${bytes} bytes; at most ${options.inputBytesMax} are taken. Put it in a file and name the file.`);
  }
  // A lone surrogate has no UTF-8 form: it would come back from the store as something else.
  return text.toWellFormed();
}

function checkedInputId(inputId: string): string {
  if (inputIdPattern.test(inputId)) return inputId;
  throw new CodedError("INPUT_ID_INVALID", `Not an input id: ${JSON.stringify(inputId.slice(0, 60))}. Use 1 to 200 printable ASCII characters without spaces.`);
}

class StoredAgent implements Agent {
  readonly #deps: AgentDeps & { readonly host: Host; readonly presence: ProcessPresence };
  readonly #options: ResolvedAgentOptions;
  readonly #runner: Runner;
  readonly #registration: Disposable;
  readonly #runnerDeps: RunnerDeps;
  readonly #runners = new Map<string, SessionRunner>();
  readonly #work = new Set<Promise<void>>();
  readonly #ownsPresence: boolean;
  #isClosed = false;

  constructor(deps: AgentDeps & { readonly host: Host; readonly presence: ProcessPresence }, options: ResolvedAgentOptions, ownsPresence: boolean) {
    this.#deps = deps;
    this.#options = options;
    this.#ownsPresence = ownsPresence;
    this.#runner = { runnerId: deps.host.random.id(), ...deps.presence.identity };
    this.#registration = deps.presence.register(this.#runner.runnerId);
    const contexts = new Map<string, KnownContext>();
    this.#runnerDeps = {
      store: deps.store,
      host: deps.host,
      scheduler: deps.scheduler ?? sharedScheduler(),
      presence: deps.presence,
      runner: this.#runner,
      model: deps.model,
      tools: toolSet(deps.tools ?? []),
      contexts,
      killProcessesOf: deps.killProcessesOf,
      follow: (call) => this.#track(this.#follow(call)),
      onIdle: () => {},
    };
  }

  run(sessionId: string, input: string, options: RunOptions = {}): Turn {
    if (this.#isClosed) throw new CodedError("AGENT_CLOSED", "The agent is closed; make another one.");
    const call = new TurnCall(this.#deps.host, {
      sessionId: checkedSessionId(sessionId),
      inputId: checkedInputId(options.inputId ?? this.#deps.host.random.id()),
      text: checkedInput(input, this.#options),
      onBusy: options.onBusy ?? "wait",
      waitMs: options.waitMs ?? this.#options.waitMs,
      approval: options.approval ?? "deny",
    });
    this.#track(this.#start(call));
    return call.turn;
  }

  #track(work: Promise<void>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  /** Stores the input, and gives the call to whoever will bring it to its end. Never rejects. */
  async #start(call: TurnCall): Promise<void> {
    let stopped: StopOptions | undefined;
    call.onStop = (options) => void (stopped = options);
    try {
      const offer = await this.#offer(call);
      if (offer.kind === "busy") {
        const holder = offer.lease?.holder ?? offer.head?.runner;
        return call.finish({ outcome: "busy", reason: "session_busy", ...(holder ? { detail: `Held by pid ${holder.pid} on ${holder.host}. Try again.` } : {}) });
      }
      if (offer.kind === "conflict") {
        const detail = `Input id ${call.request.inputId} was used with other content in session ${call.request.sessionId}; nothing was stored.`;
        return call.finish({ outcome: "failed", reason: "input_id_conflict", detail });
      }
      call.emit({ type: "input.accepted", inputId: call.request.inputId });
      if (call.request.onBusy === "interrupt" && offer.lease) await this.#interruptForMessage(call.request.sessionId);
      await this.#place(call, offer);
      if (stopped) call.onStop(stopped);
    } catch (error) {
      call.finish(endOfStoreFailure(error));
    }
  }

  async #offer(call: TurnCall): Promise<OfferResult> {
    const { sessionId, inputId, text, onBusy } = call.request;
    const request = { sessionId, inputId, text, onBusy, runner: this.#runner };
    const offer = await this.#deps.store.inbox.offer(request);
    // A session is not busy because a dead process still has its name on it.
    if (offer.kind !== "busy" || !offer.lease) return offer;
    const deadGrant = await deadGrantOf(this.#deps, offer.lease);
    return deadGrant ? this.#deps.store.inbox.offer({ ...request, deadGrant }) : offer;
  }

  async #place(call: TurnCall, offer: Extract<OfferResult, { kind: "accepted" | "known" }>): Promise<void> {
    const { input } = offer;
    if (input.state !== "pending") return this.#runnerDeps.follow(call);
    if (input.runner?.runnerId === this.#runner.runnerId) return this.#runnerOf(call.request.sessionId).add(call);
    if (input.runner !== undefined) return this.#runnerDeps.follow(call);
    call.finish({ outcome: "queued" });
  }

  async #interruptForMessage(sessionId: string): Promise<void> {
    await requestStop(this.#runnerDeps, sessionId, { hard: false, reason: "user-message", by: `pid ${this.#runner.pid}` });
  }

  async #follow(call: TurnCall): Promise<void> {
    const { runnerId } = this.#runner;
    await followInput({ ...this.#runnerDeps, runnerId, rejoin: async (back) => this.#place(back, await this.#adopt(back)) }, call);
  }

  async #adopt(call: TurnCall): Promise<Extract<OfferResult, { kind: "accepted" | "known" }>> {
    const { sessionId, inputId, text } = call.request;
    const offer = await this.#deps.store.inbox.offer({ sessionId, inputId, text, onBusy: "wait", runner: this.#runner });
    if (offer.kind === "accepted" || offer.kind === "known") return offer;
    throw new CodedError("STORE_CONTRACT", `Input ${inputId} of session ${sessionId} was offered again and answered ${offer.kind}.`);
  }

  #runnerOf(sessionId: string): SessionRunner {
    let runner = this.#runners.get(sessionId);
    if (!runner) {
      runner = new SessionRunner({ ...this.#runnerDeps, onIdle: () => void this.#runners.delete(sessionId) }, this.#options, sessionId);
      this.#runners.set(sessionId, runner);
    }
    return runner;
  }

  async stop(sessionId: string, options: StopOptions = {}): Promise<RequestStopResult> {
    const { hard = false, by = `pid ${this.#runner.pid}` } = options;
    return requestStop(this.#runnerDeps, checkedSessionId(sessionId), { hard, reason: "user-stop", by });
  }

  async idle(): Promise<void> {
    while (this.#work.size > 0 || this.#runners.size > 0) {
      await Promise.all(this.#work);
      await Promise.all([...this.#runners.values()].map((runner) => runner.idle()));
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all([...this.#runners.values()].map((runner) => runner.close()));
    await this.idle();
    this.#registration[Symbol.dispose]();
    if (this.#ownsPresence) await this.#deps.presence.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/**
 * Makes an agent on a store: everything it does goes through the inbox, runs under a lease, and is appended step by
 * step under the fencing token. Many agents, in many processes, may share a store.
 */
export async function createAgent(deps: AgentDeps, options: AgentOptions = {}): Promise<Agent> {
  const host = deps.host ?? systemHost;
  const resolved = resolveAgentOptions(options, process.cwd());
  const presence = deps.presence ?? (await openProcessPresence({ host }));
  return new StoredAgent({ ...deps, host, presence }, resolved, deps.presence === undefined);
}
