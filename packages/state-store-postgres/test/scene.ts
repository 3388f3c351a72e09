import { systemHost } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { EntryDraft, Grant, ProcessIdentity, StateStore } from "@turnkeeper/state-store";
import { openPostgresStore } from "@turnkeeper/state-store-postgres";
import type { PostgresStore, PostgresStoreOptions } from "@turnkeeper/state-store-postgres";
import { onTestFinished } from "vitest";
import { serverUrl } from "./postgres-harness.ts";

const identity: ProcessIdentity = { instanceId: "instance-1", host: "host-1", bootId: "boot-1", pid: 101 };

export function says(key: string): EntryDraft {
  return { key, body: { role: "assistant", parts: [{ type: "text", text: `text of ${key}` }] } };
}

/** The URL of the shared server, through this port. */
export function urlThrough(port: number, url: string = serverUrl): string {
  const through = new URL(url);
  through.port = `${port}`;
  return through.href;
}

/** Opens a handle that the test closes at its end. */
export async function openHandle(
  url: string,
  options: PostgresStoreOptions,
  host: Host = systemHost,
): Promise<PostgresStore> {
  const store = await openPostgresStore(url, { host }, options);
  onTestFinished(() => store.close());
  return store;
}

export function offer(store: StateStore, inputId: string, onBusy: "wait" | "steer" = "wait"): Promise<unknown> {
  const runner = { ...identity, runnerId: "runner-1" };
  return store.inbox.offer({ sessionId: "session-1", inputId, text: `text of ${inputId}`, onBusy, runner });
}

export interface Turn {
  readonly grant: Grant;
  readonly turnId: string;
}

/** `name` offers an input and begins turn `turn-NAME` with it. */
export async function startTurn(store: StateStore, name: string, ttlMs = 60_000): Promise<Turn> {
  await offer(store, `input-${name}`);
  const [sessionId, turnId] = ["session-1", `turn-${name}`];
  const holder = { ...identity, holderId: `holder-${name}` };
  const begin = { turnId, runnerId: "runner-1" };
  const answer = await store.leases.acquire({ sessionId, holder, ttlMs, begin });
  if (answer.kind !== "granted") throw new Error(`${name} asked and was answered ${answer.kind}.`);
  return { grant: { sessionId, holderId: holder.holderId, fencingToken: answer.fencingToken }, turnId };
}

export async function keysOf(store: StateStore): Promise<readonly string[]> {
  return (await store.transcript.load("session-1", { all: true })).entries.map(({ key }) => key);
}
