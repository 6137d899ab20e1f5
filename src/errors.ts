/**
 * Every error of ours, and the one table that says what each door makes of it.
 * Ask first: who can act on it? The model or user (CommandError, bad arguments), the client's author
 * (RequestError), the person at the keyboard (UsageError), the operator (RuntimeError), or us (anything else).
 */

const brand = Symbol.for("meanwhile.commandError");

/** The command said no: whatever an author's `run()` throws counts as one. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
  readonly details: unknown;

  /** True also for an error from another copy of this package, such as the one that a project has installed. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: subclasses inherit this method.
    if (this !== CommandError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === "object" && value !== null && brand in value;
  }

  static {
    Object.defineProperty(CommandError.prototype, brand, { value: true });
  }

  constructor(message: string, options: { details?: unknown; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.details = options.details;
  }
}

/** The arguments do not fit their schema. */
export class InputError extends CommandError {
  override readonly name = "InputError";
}

/** A question was declined or dismissed. */
export class Declined extends CommandError {
  override readonly name = "Declined";
  readonly question: string;

  constructor(question: string) {
    super(`The question «${question}» was declined, so nothing more was done.`);
    this.question = question;
  }
}

/** The client's author has to change something: unknown tool, bad params, bad message. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly kind: RequestErrorKind;

  constructor(kind: RequestErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/**
 * An answer of the protocol's own, as it stands: for codes that are no kind of ours, and for what an author throws as
 * one.
 */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** The words on the command line are off. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The operator has to act; `code` names the condition. */
export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  readonly code: RuntimeErrorCode;
  /**
   * What clients are told of it: what happened and who can mend it, without a path. Undefined where it is none of their
   * business.
   */
  readonly forClients: string | undefined;

  constructor(code: RuntimeErrorCode, message: string, options: ErrorOptions & { readonly forClients?: string } = {}) {
    const { forClients, ...rest } = options;
    super(message, rest);
    this.code = code;
    this.forClients = forClients;
  }
}

export type RuntimeErrorCode =
  | "CONFIG_INVALID"
  | "COMMAND_CLASH"
  | "SERVER_UNUSABLE"
  | "PORT_IN_USE"
  | "HOME_UNUSABLE"
  | "QUEUE_UNAVAILABLE"
  | StoreErrorCode;
/** `STORE_GONE`: nothing can be written any more before a restart, or before its files are back. */
type StoreErrorCode = "STORE_UNAVAILABLE" | "STORE_DAMAGED" | "STORE_GONE" | "SCHEMA_NEWER";
export type RequestErrorKind = "parse" | "request" | "method" | "params" | "tooLarge" | "busy";

/** Why work was ended early. `signal.reason` is one of these, and only it decides how the run is recorded. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
  constructor(message = "Cancelled by the caller.") {
    super(message);
  }
}

export class TimedOut extends Error {
  override readonly name = "TimedOut";
  constructor(seconds: number) {
    super(`Timed out after ${seconds} s.`);
  }
}

export class ShuttingDown extends Error {
  override readonly name = "ShuttingDown";
  constructor() {
    super("The server is shutting down.");
  }
}

/** Every JSON-RPC code that we send or know: those of JSON-RPC itself, then those of MCP. */
export const RpcCode = {
  Parse: -32700,
  Request: -32600,
  Method: -32601,
  Params: -32602,
  Internal: -32603,
  SessionNotFound: -32001,
  HeaderMismatch: -32020,
  MissingCapability: -32021,
  UnsupportedRevision: -32022,
  UrlElicitationRequired: -32042,
} as const;

/** JSON-RPC code and HTTP status of what a client's author got wrong. */
export const requestErrors: Record<RequestErrorKind, { readonly code: number; readonly http: number }> = {
  parse: { code: RpcCode.Parse, http: 400 },
  request: { code: RpcCode.Request, http: 400 },
  method: { code: RpcCode.Method, http: 404 },
  params: { code: RpcCode.Params, http: 200 },
  tooLarge: { code: RpcCode.Request, http: 413 },
  busy: { code: RpcCode.Internal, http: 429 },
};

export const Exit = { Ok: 0, CommandFailed: 1, Usage: 2, Internal: 70, TimedOut: 124, Cancelled: 130 } as const;
export type ExitCode = (typeof Exit)[keyof typeof Exit];

/** The exit code of whatever ended a terminal run by throwing. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError || error instanceof RequestError || error instanceof InputError) return Exit.Usage;
  if (error instanceof CommandError) return Exit.CommandFailed;
  if (error instanceof Cancelled) return Exit.Cancelled;
  if (error instanceof TimedOut) return Exit.TimedOut;
  return Exit.Internal;
}

/** True when the database of tasks cannot be used, for now or for good: what needs none goes on. */
export function isStoreError(error: unknown): error is RuntimeError {
  return error instanceof RuntimeError && (error.code.startsWith("STORE_") || error.code === "SCHEMA_NEWER");
}

/**
 * True when a file or connection could not be opened because this process, or the machine, has as many open as it may.
 */
export function isOutOfDescriptors(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return code === "EMFILE" || code === "ENFILE";
}

/** What everybody is told of that. */
export const outOfDescriptors =
  "no file descriptors are left; raise their number with `ulimit -n`, or end what holds them";

/** The sentence to show for anything that was thrown; never a stack. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return typeof error === "string" ? error : `Threw ${describeThrown(error)} instead of an Error.`;
}

function describeThrown(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}
