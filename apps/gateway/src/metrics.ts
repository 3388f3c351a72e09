import type { Agent, TurnEvent } from "@turnkeeper/agent-core";
import type { Host } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { EventStreams } from "./event-stream.ts";
import { suspends } from "./events/live-turns.ts";
import type { LoopDelay } from "./loop-delay.ts";
import { MeasuredStore } from "./measured-store.ts";
import type { MeasuredWrite } from "./measured-store.ts";
import type { EndedCall, OpenCalls } from "./open-calls.ts";

export interface MetricsDeps {
  readonly agent: Pick<Agent, "observe">;
  readonly store: StateStore;
  readonly host: Host;
  readonly calls: OpenCalls;
  readonly streams: EventStreams;
  readonly loopDelay: LoopDelay;
}

/** Reasons that are told by name: those of an interruption and of a failure are few, and anything else is not a label. */
const reasonPattern = /^[A-Za-z][A-Za-z0-9_-]{0,40}$/;

const turnSeconds = [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000];
const waitSeconds = [0.001, 0.01, 0.1, 1, 10, 60, 600];
const writeSeconds = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.03, 0.1, 0.3, 1, 5];
const requestSeconds = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 10, 100];

/** What happens in this process, counted for Prometheus; a registry of its own, so that two gateways do not meet. */
export class Metrics implements Disposable {
  readonly #registry = new Registry();
  readonly #host: Host;
  readonly #observers: Disposable[];
  readonly #startedAtMs = new Map<string, number>();
  readonly #turns = this.#counter("turns_total", "Turns that ended here, by outcome and reason.", [
    "outcome",
    "reason",
  ]);
  readonly #held = this.#histogram("turn_hold_seconds", "How long a turn held its session.", turnSeconds, ["outcome"]);
  readonly #waited = this.#histogram(
    "turn_wait_seconds",
    "How long a call waited before it was refused or began.",
    waitSeconds,
  );
  readonly #stalls = this.#counter("turn_stalls_total", "Turns that were seen without progress.");
  readonly #refusals = this.#counter("fencing_refusals_total", "Writes that were refused by their fencing token.");
  readonly #failures = this.#counter("store_failures_total", "Writes of turns that the store failed, by code.", [
    "code",
  ]);
  readonly #writes = this.#histogram("append_seconds", "How long a turn's writes took.", writeSeconds, ["kind"]);
  readonly #requests = this.#histogram("http_request_seconds", "Requests, streams to their end.", requestSeconds, [
    "method",
    "route",
    "status",
  ]);

  constructor(deps: MetricsDeps) {
    const { agent, store, host, calls, streams, loopDelay } = deps;
    this.#host = host;
    this.#observers = [agent.observe((event) => this.#count(event))];
    if (store instanceof MeasuredStore) this.#observers.push(store.onWrite((write) => this.#countWrite(write)));
    this.#observers.push(calls.onEnded((ended) => this.#countWait(ended)));
    this.#gauge("turns_running", "Turns that run here.", () => this.#startedAtMs.size);
    this.#gauge("calls_open", "Calls that wait or run here.", () => calls.count);
    this.#gauge("event_streams_open", "Event streams that are open.", () => streams.openCount);
    this.#gauge("event_loop_delay_seconds", "The longest of the last seconds.", () => loopDelay.longestMs / 1000);
    this.#gauge("resident_memory_bytes", "Memory of this process.", () => process.memoryUsage.rss());
    this.#total("calls_refused_total", "Calls that were refused with 429.", () => calls.refusedCount);
    this.#total("event_streams_dropped_total", "Streams whose reader was too slow.", () => streams.droppedCount);
  }

  /** `text/plain; version=0.0.4`, as Prometheus reads it. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  request(labels: { readonly method: string; readonly route: string; readonly status: number }, ms: number): void {
    this.#requests.observe(labels, ms / 1000);
  }

  /** Until its turn began here, or until it was refused; one whose turn ran elsewhere is not known. */
  #countWait({ finished: { turnId, outcome }, begunAtMs }: EndedCall): void {
    const startedAtMs = turnId === undefined ? undefined : this.#startedAtMs.get(turnId);
    if (startedAtMs !== undefined) this.#waited.observe(Math.max(0, startedAtMs - begunAtMs) / 1000);
    else if (outcome === "busy") this.#waited.observe((this.#host.clock.monotonicMs() - begunAtMs) / 1000);
  }

  #count(event: TurnEvent): void {
    const { turnId = "" } = event;
    if (event.type === "turn.started") this.#startedAtMs.set(turnId, this.#host.clock.monotonicMs());
    // It lets go of its session; where it goes on, and whether it does, is told anew.
    if (suspends(event)) this.#startedAtMs.delete(turnId);
    if (event.type === "turn.stalled") this.#stalls.inc();
    if (event.type !== "turn.finished") return;
    const { outcome, reason = "" } = event;
    this.#turns.inc({ outcome, reason: reasonPattern.test(reason) ? reason : "" });
    const startedAtMs = this.#startedAtMs.get(turnId);
    // Its calls end in this same turn of the event loop, and are counted before this.
    queueMicrotask(() => this.#startedAtMs.delete(turnId));
    if (startedAtMs !== undefined)
      this.#held.observe({ outcome }, (this.#host.clock.monotonicMs() - startedAtMs) / 1000);
  }

  #countWrite({ kind, durationMs, outcome, code }: MeasuredWrite): void {
    this.#writes.observe({ kind }, durationMs / 1000);
    if (outcome === "stale-token") this.#refusals.inc();
    if (outcome === "failed") this.#failures.inc({ code: code ?? "" });
  }

  #counter<Label extends string>(name: string, help: string, labelNames: readonly Label[] = []): Counter<Label> {
    return new Counter({ name: `turnkeeper_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] });
  }

  #histogram<Label extends string>(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames: readonly Label[] = [],
  ): Histogram<Label> {
    return new Histogram({
      name: `turnkeeper_${name}`,
      help,
      buckets: [...buckets],
      labelNames: [...labelNames],
      registers: [this.#registry],
    });
  }

  #gauge(name: string, help: string, read: () => number): void {
    const gauge: Gauge = new Gauge({
      name: `turnkeeper_${name}`,
      help,
      registers: [this.#registry],
      collect: () => gauge.set(read()),
    });
  }

  /** A count that somebody else keeps. */
  #total(name: string, help: string, read: () => number): void {
    const counter: Counter = new Counter({
      name: `turnkeeper_${name}`,
      help,
      registers: [this.#registry],
      collect: () => {
        counter.reset();
        counter.inc(read());
      },
    });
  }

  [Symbol.dispose](): void {
    for (const observer of this.#observers) observer[Symbol.dispose]();
    this.#registry.clear();
  }
}
