import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { SpanExporter } from "@opentelemetry/sdk-trace-base";
import type { Agent } from "@turnkeeper/agent-core";
import { traceTurns } from "@turnkeeper/gateway/telemetry";
import { versionText } from "./version.ts";

/** A collector that does not answer must not hold up a shutdown; its exporter gives up before its queue does. */
const sendMs = 2000;
const exportMs = 3000;

export interface Telemetry {
  /** Sends what has not been sent yet, for a few seconds at most. */
  close(): Promise<void>;
}

function tracesUrl(endpoint: string): string {
  return `${endpoint.replace(/\/+$/, "")}/v1/traces`;
}

/** The first failure is told; a collector that is away is away for all that follow. */
function tellingFirstFailure(exporter: SpanExporter, tell: (text: string) => void): SpanExporter {
  let isTold = false;
  const told = ({ error }: ExportResult): void => {
    if (!error || isTold) return;
    isTold = true;
    tell(`Spans could not be sent: ${error.message.slice(0, 300) || error.name}`);
  };
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        told(result);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}

type ExportResult = Parameters<Parameters<SpanExporter["export"]>[1]>[0];

/**
 * Sends the turns of `agent` as spans to an OTLP collector. Its credentials come from OTEL_EXPORTER_OTLP_HEADERS, as
 * everywhere. Loaded only where it is configured.
 */
export function startTelemetry(agent: Agent, endpoint: string, tell: (text: string) => void): Telemetry {
  const version = versionText();
  const sender = new OTLPTraceExporter({ url: tracesUrl(endpoint), timeoutMillis: sendMs });
  const exporter = tellingFirstFailure(sender, tell);
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ "service.name": "turnkeeper", "service.version": version }),
    spanProcessors: [new BatchSpanProcessor(exporter, { exportTimeoutMillis: exportMs })],
  });
  const traces = traceTurns(agent, provider.getTracer("@turnkeeper/gateway", version));
  const close = async (): Promise<void> => {
    traces[Symbol.dispose]();
    await provider.shutdown();
  };
  return { close };
}
