/** What the gateway answers, as far as the page reads it. Ages and remaining times are of the moment of the answer. */

export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
}

export interface SessionItem {
  readonly sessionId: string;
  readonly title?: string;
  readonly updatedAt: string;
  readonly entryCount: number;
  readonly lastEntry?: { readonly role: string; readonly toolName?: string };
  readonly parent?: { readonly sessionId: string };
}

export interface SessionPage {
  readonly sessions: readonly SessionItem[];
  readonly nextCursor?: string;
}

export interface Progress {
  readonly last: string;
  readonly ageMs: number;
  readonly waits: readonly { readonly kind: string; readonly name: string; readonly endsInMs: number }[];
  readonly stopsInMs: number | null;
}

export type Pulse = "alive" | "dead" | "leaked" | "unknown" | "asks" | "awaits-result";

export interface StopAsked {
  readonly hard: boolean;
  readonly by: string;
}

export interface RunningTurn {
  readonly session: string;
  readonly turnId: string;
  readonly pid: number;
  readonly host: string;
  readonly state: Pulse;
  readonly ageMs: number;
  readonly fencingToken: number;
  readonly expiresInMs: number | null;
  readonly pendingCount: number;
  readonly stop: StopAsked | null;
  readonly progress: Progress | null;
}

export interface Ask {
  readonly callId: string;
  readonly name: string;
  readonly at: string;
  readonly decision: "allow" | "deny" | null;
  /** Its client runs it, and sends the result. */
  readonly awaits?: "result";
}

export interface SessionWhy {
  readonly session: string;
  readonly holder: { readonly pid: number; readonly host: string; readonly state?: Pulse } | null;
  readonly lease: {
    readonly fencingToken: number;
    readonly standing: string;
    readonly expiresInMs: number;
    readonly ttlMs: number;
    readonly renewCount: number;
  } | null;
  readonly turn: {
    readonly turnId: string;
    readonly state: string;
    readonly asks: readonly Ask[];
    readonly ageMs: number;
    readonly stop: StopAsked | null;
  } | null;
  readonly progress: Progress | null;
  readonly lastStep: { readonly what: string; readonly at: string } | null;
  readonly pending: readonly {
    readonly inputId: string;
    readonly delivery: string;
    readonly at: string;
    readonly runner: { readonly pid: number; readonly host: string; readonly state?: Pulse } | null;
  }[];
  readonly next: string;
}

export interface CallJson {
  readonly callId: string;
  readonly name: string;
  readonly input: unknown;
}

/** One entry of a transcript. */
export interface Message {
  readonly role: "user" | "assistant" | "tool" | "summary" | "notice";
  readonly seq: number;
  readonly turnId: string;
  readonly at: string;
  readonly archived?: boolean;
  readonly late?: boolean;
  readonly text?: string;
  readonly inputId?: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly CallJson[];
  readonly providerTools?: readonly (CallJson & { readonly output?: unknown })[];
  readonly partial?: boolean;
  readonly model?: string;
  readonly callId?: string;
  readonly name?: string;
  readonly status?: string;
  readonly output?: unknown;
  readonly note?: string;
}

export interface MessagePage {
  readonly messages: readonly Message[];
  readonly nextCursor?: string;
}

export interface TurnEnd {
  readonly turnId: string;
  readonly outcome: string;
  readonly reason?: string;
  readonly detail?: string;
  readonly by?: string;
}

export interface SessionRecords {
  readonly session: string;
  readonly title?: string;
  readonly entryCount: number;
  readonly inputs: readonly {
    readonly inputId: string;
    readonly state: string;
    readonly text: string;
    readonly at: string;
  }[];
  readonly turns: readonly (Partial<TurnEnd> & { readonly turnId: string; readonly state: string })[];
}
