import type { Benchmark } from "./benchmark.ts";
import { append } from "./benchmarks/append.ts";
import { appendMany } from "./benchmarks/append-many.ts";
import { fanOut } from "./benchmarks/fan-out.ts";
import { firstToken } from "./benchmarks/first-token.ts";
import { handOver } from "./benchmarks/hand-over.ts";
import { busy } from "./benchmarks/busy.ts";
import { holderKilled } from "./benchmarks/holder-killed.ts";
import { http } from "./benchmarks/http.ts";
import { lease } from "./benchmarks/lease.ts";
import { load } from "./benchmarks/load.ts";
import { loop } from "./benchmarks/loop.ts";
import { progress } from "./benchmarks/progress.ts";
import { server } from "./benchmarks/server.ts";
import { serverHandOver } from "./benchmarks/server-hand-over.ts";
import { sse } from "./benchmarks/sse.ts";
import { step } from "./benchmarks/step.ts";
import { stream } from "./benchmarks/stream.ts";
import { timers } from "./benchmarks/timers.ts";
import { toolCall } from "./benchmarks/tool-call.ts";
import { turn } from "./benchmarks/turn.ts";

/** Every benchmark, in the order in which they run. */
export const benchmarks: readonly Benchmark[] = [
  lease,
  handOver,
  holderKilled,
  turn,
  step,
  stream,
  loop,
  toolCall,
  fanOut,
  progress,
  append,
  appendMany,
  load,
  busy,
  server,
  serverHandOver,
  timers,
  http,
  sse,
  firstToken,
];
