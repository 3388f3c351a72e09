import type { JsonValue } from "@turnkeeper/state-store";
import type { Delegate } from "./delegation/turn-delegation.ts";

/** The part of the Standard Schema v1 interface (standardschema.dev) that a tool's input schema must have. */
export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    validate(value: unknown): SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** The JSON Schema half of the standard; zod 4 has it. */
    readonly jsonSchema?: { input(options: { target: string }): Record<string, unknown> };
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/** What a tool may know of the turn it runs in. */
export interface ToolContext {
  readonly sessionId: string;
  readonly turnId: string;
  readonly callId: string;
  /** Absolute path of the folder that file tools stay inside and processes start in. */
  readonly workspace: string;
  /** Aborts on any stop of the turn, soft or hard: end soon and cleanly. Its reason is a `CodedError`. */
  readonly signal: AbortSignal;
  /** Aborts on a hard stop: end now. */
  readonly hardSignal: AbortSignal;
  /** Says that the call moved (a declared heartbeat); the only thing that moves the turn's clock while it runs. */
  progress(detail?: string): void;
  /**
   * Hands a task to a subagent with a session of its own, and waits for its end, whatever that is. Its end counts as
   * told by this call's result, where the call returns one; else a message tells of it. Absent where no agent runs the
   * call. Rejects with `CHILD_LIMIT`, `CHILD_DEPTH`, `CHILD_LEFT` once the turn was stopped softly, `CHILD_WAITS` where
   * the call is given up and will run again, or as `run` does.
   */
  readonly delegate?: Delegate;
  /** Environment variables that every process of this call must carry, so that a later holder can find and end it. */
  readonly processMarker: Readonly<Record<string, string>>;
}

/** A function of a tool's input, as a method so that a list of tools can hold tools of different inputs. */
type OfInput<Input, Output> = { of(input: Input): Output }["of"];

/** What the guardrails of a turn must know of a tool to tell work from a loop. */
export interface ToolTraits {
  /** It is asked again and again until something has happened; repeating it is no loop. Default: by name. */
  readonly polls?: boolean;
  /** Its success changes what other calls find: what failed before may succeed now. Default false. */
  readonly mutates?: boolean;
  /** Its failures are answers (a command's exit code): many of them are no reason to stop. Default false. */
  readonly failsByDesign?: boolean;
  /** Calls in one turn; 0: no bound. Default: by name, else no bound. */
  readonly maxPerTurn?: number;
}

export interface ToolDefinition<Input = unknown> {
  /** `^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`: what every provider accepts. */
  readonly name: string;
  /** For the model: what it does, what it answers. */
  readonly description: string;
  /** zod or any Standard Schema. Arguments that do not fit become a tool error that the model sees. */
  readonly input: StandardSchema<Input>;
  /** JSON Schema of the input, where the schema library cannot give it. */
  readonly jsonSchema?: Record<string, unknown>;
  /** Whether a call must be allowed before it runs. Default: never. */
  readonly needsApproval?: boolean | OfInput<Input, boolean>;
  /** How long one call may be silent, in milliseconds: its declared wait. Default 600,000. */
  readonly boundMs?: number | OfInput<Input, number>;
  /**
   * `exclusive`: a call never runs while another of its step does, and those after it wait for its end. For whatever
   * changes what other calls look at. Default `shared`: the calls of a step run at once.
   */
  readonly concurrency?: "shared" | "exclusive";
  readonly traits?: ToolTraits;
  /**
   * Whether a call that delegates may be given up while its subagents wait for approval, and be run again from its
   * beginning once the first of them has ended: `delegate` then answers at once for those that have, in the order of its
   * calls, and waits again for the others. The same call must delegate the same tasks in the same order. Its turn is
   * suspended meanwhile. For tools without a side effect of their own before that answer. Default false: the call waits,
   * and its turn with it.
   */
  readonly mayRunAgain?: boolean;
  /**
   * Runs the call. Throw to tell the model it failed (message only); answer text or JSON otherwise. A `CodedError` may
   * carry in its context, as `receipt`, what was done to end the call: it is stored with the result, for people. Must
   * end soon after `context.signal` aborts; one that does not is detached, and what it answers later is stored as late.
   */
  execute(input: Input, context: ToolContext): Promise<JsonValue>;
}

/** A tool of any input type, as a list of tools holds it. */
// Method parameters are bivariant, so a ToolDefinition of a narrower input is assignable here.
export type AnyTool = ToolDefinition<never> | ToolDefinition;

const namePattern = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

/** Checks a tool's definition once, where it is written, and gives it its input type. */
export function defineTool<Input>(definition: ToolDefinition<Input>): ToolDefinition<Input> {
  if (!namePattern.test(definition.name)) {
    throw new TypeError(`A tool name matches ${namePattern.source}, got ${JSON.stringify(definition.name)}.`);
  }
  return Object.freeze({ ...definition });
}
