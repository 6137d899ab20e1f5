import type { Caller, CallerDetails } from "./caller.ts";
import type { ForeignRequest, JsonObject } from "./foreign.ts";
import type { RpcError } from "./outcome.ts";
import type { InferOutput, JsonSchema, Schema } from "./schema.ts";

/** How far a run is: a percentage, a count, or only words; each with a message and free context. */
export type ProgressReport = { readonly message?: string; readonly context?: Readonly<Record<string, unknown>> } & (
  | { readonly percentage: number; readonly done?: never; readonly total?: never }
  | { readonly done: number; readonly total?: number; readonly percentage?: never }
  | { readonly percentage?: never; readonly done?: never; readonly total?: never }
);

export type CommandLogLevel = "debug" | "info" | "warn" | "error";

export interface LogLine {
  readonly level: CommandLogLevel;
  readonly text: string;
  readonly timestamp: string;
  readonly details?: unknown;
}

export interface CommandLog {
  debug(text: string, details?: unknown): void;
  info(text: string, details?: unknown): void;
  /** Also one of the result's `messages`, so that the model sees it. */
  warn(text: string, details?: unknown): void;
  /** Also one of the result's `messages`, so that the model sees it. */
  error(text: string, details?: unknown): void;
}

/** Where a call came from. It stays the same for every attempt, in whichever process that is. */
export interface Origin {
  /** `terminal`: a person has typed it. `mcp`: a client asked for it, and most likely a model. */
  readonly door: "terminal" | "mcp";
  /** The working folder of the shell, or of the client's session; undefined where there is none, as over HTTP. */
  readonly folder: string | undefined;
  /** What is known of the client besides; there only where a run may need it. */
  readonly client?: OriginClient;
}

/** Of the client that asked, for whoever runs it later. Two calls that differ in nothing else are equal. */
export interface OriginClient {
  /** Names the session, as long as that lasts, within one process. */
  readonly session?: string;
  /** Speaks 2026-07-28 or later. */
  readonly isModern?: boolean;
  /** As it has declared them. */
  readonly capabilities?: JsonObject;
  /** What was known about the caller beside the ID. */
  readonly caller?: CallerDetails;
  /** The `_meta` of its request, without the token that its progress has. */
  readonly meta?: JsonObject;
  /** A mark of the variables that its session was started with; nothing can be told from it. */
  readonly environment?: string;
  /** Answers that it gave before it was asked. */
  readonly responses?: JsonObject;
}

/** Of a call of which nothing is known: this door may do least. */
export const unknownOrigin: Origin = { door: "mcp", folder: undefined };

/** What `run()` receives beside its input. */
export interface CommandContext {
  /** Aborted when the caller cancels, time is up, or the server stops. Hand it to whatever can wait. */
  readonly signal: AbortSignal;
  /** Meanwhile's own folder on this machine. */
  readonly home: string;
  /** The settings in force, defaults filled in. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Who asked for this run. */
  readonly caller: Caller;
  /** By which door they asked, and in which folder: relative paths are meant from there, not from the server's own. */
  readonly origin: Origin;
  /** Which attempt this is: 1, and more after a retry or a crash. */
  readonly attempt: number;
  readonly log: CommandLog;
  /** Says in one line what is about to happen. */
  announce(text: string): void;
  /** Says how far the run is. Cheap: call it as often as you like. */
  progress(report: ProgressReport | string): void;
  /** Asks the person behind the call. Throws `Declined` when they decline or dismiss the question. */
  ask<S extends Schema>(question: string, answer: S): Promise<InferOutput<S>>;
  /** The folders that the client of this call works in, as it tells when asked; none where it cannot tell. */
  roots(): Promise<readonly Root[]>;
  /**
   * Does a part of the work once: in a later attempt of the same task its value is remembered instead. The value must
   * be JSON.
   */
  step<T>(name: string, work: () => T | Promise<T>): Promise<T>;
}

/** A folder of a client's. */
export interface Root {
  /** Most of them are `file://` addresses. */
  readonly uri: string;
  readonly name?: string;
}

/** What is known of a call before anything runs. */
export type CallFacts = Pick<CommandContext, "origin" | "home" | "config">;

/** Where finished steps are remembered, as JSON. */
export interface Steps {
  get(name: string): string | undefined;
  /** With `isSafe` it is also said, in one go with it, whether another attempt may go on from here after a crash. */
  keep(name: string, json: string, rules?: { readonly isSafe: boolean }): Promise<void>;
  all(): readonly (readonly [string, string])[];
}

/** A question on its way to a person, in a shape every door can show. */
export interface Question {
  readonly message: string;
  /** A flat object schema: strings, numbers, booleans, enums. */
  readonly schema: JsonSchema;
  /** Asks for leave to go ahead at all; only a person may give it. */
  readonly isConfirmation: boolean;
  /**
   * What somebody else's server has asked, word for word: put to a client as it is, and answered with the client's
   * result as `content`. Only an elicitation can be shown to a person.
   */
  readonly request?: ForeignRequest;
  /** What its key is to be, unless that was used before. */
  readonly key?: string;
}

export type Answer =
  | { readonly action: "accept"; readonly content: Readonly<Record<string, unknown>> }
  | {
      readonly action: "decline" | "cancel";
      /** What a client has answered in place of a result. */
      readonly error?: RpcError;
    };

/** What a run tells the door it came through. A door listens to what it can show. */
export interface Door {
  /** What is run is a task from its beginning. */
  readonly isTask?: boolean;
  announce?(text: string): void;
  progress?(report: ProgressReport): void;
  log?(line: LogLine): void;
  /** What a server behind the command tells its client, word for word. */
  notify?(method: string, params: JsonObject): void;
  /** Ends the stream on which a client waits, who comes back for the rest. */
  readonly hangUp?: (() => void) | undefined;
  /** Whoever does the work has made a task of it. */
  becomesTask?(): void;
  /** The run has said all that it will say. */
  finish?(): void;
  /** Resolves when this result may be written out; undefined when that is now. */
  room?(data: unknown): Promise<unknown> | undefined;
  /** Absent where nobody can be asked; `whyNoAnswer` then says what to do instead. */
  readonly ask?: ((question: Question, signal: AbortSignal) => Promise<Answer>) | undefined;
  readonly whyNoAnswer?: string | undefined;
}
