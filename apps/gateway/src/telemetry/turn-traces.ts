import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { Context, Span, Tracer } from "@opentelemetry/api";
import type { Agent, ModelCallReport, TurnEvent } from "@turnkeeper/agent-core";
import { suspends } from "../events/live-turns.ts";
import { endAttributes, modelCallAttributes, toolAttributes, turnAttributes } from "./span-attributes.ts";

export interface TraceTurnsOptions {
  /** What spans call the agent. Default `turnkeeper`. */
  readonly agentName?: string;
}

interface TracedTurn {
  readonly turnId: string;
  readonly span: Span;
  /** The calls that have begun, by their ids. */
  readonly tools: Map<string, Span>;
}

const atMsOf = ({ at }: TurnEvent): number => Date.parse(at);

/**
 * The turns of one agent as spans:
 *
 *   | span               | from           | to                                       | inside              |
 *   | ------------------ | -------------- | ---------------------------------------- | ------------------- |
 *   | invoke_agent       | turn.started   | turn.finished, or its suspension         | its parent's tool   |
 *   | chat MODEL         | the request    | the last of its answer, or what cut it   | invoke_agent        |
 *   | execute_tool TOOL  | tool.started   | tool.finished, or the end of the turn    | invoke_agent        |
 */
class TurnTraces implements Disposable {
  readonly #tracer: Tracer;
  readonly #agentName: string;
  readonly #turns = new Map<string, TracedTurn>();
  /** The calls that run a child, by the child's session. */
  readonly #callers = new Map<string, Span>();
  readonly #observers: readonly Disposable[];

  constructor(agent: Pick<Agent, "observe" | "observeModelCalls">, tracer: Tracer, agentName: string) {
    this.#tracer = tracer;
    this.#agentName = agentName;
    this.#observers = [
      agent.observe((event) => this.#observe(event)),
      agent.observeModelCalls((call) => this.#tellModelCall(call)),
    ];
  }

  #observe(event: TurnEvent): void {
    if (event.type === "turn.started") return this.#begin(event);
    const turn = this.#turns.get(event.sessionId);
    if (!turn || turn.turnId !== event.turnId) return;
    switch (event.type) {
      case "tool.started":
        return this.#beginTool(turn, event);
      case "tool.finished":
        return this.#endTool(turn, event);
      case "child.started": {
        const caller = turn.tools.get(event.callId);
        if (caller) this.#callers.set(event.childSessionId, caller);
        return;
      }
      case "child.finished":
        this.#callers.delete(event.childSessionId);
        return;
      case "turn.stalled":
        turn.span.addEvent("turnkeeper.stalled", { "turnkeeper.idle_ms": event.idleMs }, atMsOf(event));
        return;
      case "turn.finished":
        turn.span.setAttributes(endAttributes(event));
        if (event.outcome === "failed") turn.span.setStatus({ code: SpanStatusCode.ERROR });
        return this.#end(turn, event);
      default:
        if (!suspends(event)) return;
        turn.span.setAttribute("turnkeeper.outcome", "suspended");
        this.#end(turn, event);
    }
  }

  #begin(started: Extract<TurnEvent, { type: "turn.started" }>): void {
    const { sessionId, turnId = "" } = started;
    const caller = this.#callers.get(sessionId);
    const span = this.#tracer.startSpan(
      `invoke_agent ${this.#agentName}`,
      {
        kind: SpanKind.INTERNAL,
        startTime: atMsOf(started),
        attributes: turnAttributes(started, this.#agentName),
      },
      caller ? trace.setSpan(ROOT_CONTEXT, caller) : remoteContext(started.traceParent),
    );
    this.#turns.set(sessionId, { turnId, span, tools: new Map() });
  }

  /** What is open then has no end of its own. */
  #end({ span, tools }: TracedTurn, event: TurnEvent): void {
    this.#turns.delete(event.sessionId);
    for (const tool of tools.values()) {
      tool.setAttribute("error.type", "interrupted");
      tool.setStatus({ code: SpanStatusCode.ERROR });
      tool.end(atMsOf(event));
    }
    span.end(atMsOf(event));
  }

  #beginTool(turn: TracedTurn, event: Extract<TurnEvent, { type: "tool.started" }>): void {
    const options = { kind: SpanKind.INTERNAL, startTime: atMsOf(event), attributes: toolAttributes(event) };
    turn.tools.set(event.callId, this.#tracer.startSpan(`execute_tool ${event.name}`, options, inside(turn)));
  }

  #endTool(turn: TracedTurn, event: Extract<TurnEvent, { type: "tool.finished" }>): void {
    const span = turn.tools.get(event.callId);
    turn.tools.delete(event.callId);
    if (!event.ok) {
      // Why it failed is what the tool said: content.
      span?.setAttribute("error.type", "tool_error");
      span?.setStatus({ code: SpanStatusCode.ERROR });
    }
    span?.end(atMsOf(event));
  }

  #tellModelCall(call: ModelCallReport): void {
    const turn = this.#turns.get(call.sessionId);
    if (turn?.turnId !== call.turnId) return;
    const attributes = modelCallAttributes(call);
    const options = { kind: SpanKind.CLIENT, startTime: call.startedAtMs, attributes };
    const name = `chat ${String(attributes["gen_ai.request.model"])}`;
    const span = this.#tracer.startSpan(name, options, inside(turn));
    if (call.failure !== undefined && call.failure !== "stopped") span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(call.endedAtMs);
  }

  [Symbol.dispose](): void {
    for (const observer of this.#observers) observer[Symbol.dispose]();
    for (const { span, tools } of this.#turns.values()) {
      for (const tool of tools.values()) tool.end();
      span.end();
    }
    this.#turns.clear();
    this.#callers.clear();
  }
}

/** The context of a span elsewhere, as `traceparent` names it. */
function remoteContext(traceParent = ""): Context {
  const [, traceId, spanId, flags = "00"] = traceParent.split("-");
  if (traceId === undefined || spanId === undefined) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
  });
}

const inside = ({ span }: TracedTurn): Context => trace.setSpan(ROOT_CONTEXT, span);

/**
 * Tells the turns that run in `agent` as spans of `tracer`, until disposed: `invoke_agent`, and in it `chat` and
 * `execute_tool`, by the conventions for generative AI. What users, models and tools said is in none of them.
 */
export function traceTurns(
  agent: Pick<Agent, "observe" | "observeModelCalls">,
  tracer: Tracer,
  { agentName = "turnkeeper" }: TraceTurnsOptions = {},
): Disposable {
  return new TurnTraces(agent, tracer, agentName);
}
