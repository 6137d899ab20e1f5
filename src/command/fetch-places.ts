import { channel } from "node:diagnostics_channel";
import { placeOf, type SourcePlace } from "./place.ts";
import { runs } from "./running.ts";

/**
 * Finds the line of a command that called `fetch`. Node makes the error of a failed `fetch` when the connection fails,
 * and that error has no stack. Node publishes each request while the caller of `fetch` is still on the stack, and the
 * error with its request later.
 */

/** Node's own frames lie between the command and the publication of a request. */
const stackLimit = 60;

/** The stack of each request that a command makes; it becomes text only where the request fails. */
const callStacks = new WeakMap<object, Error>();
/** The stack of the call that ended in this error. */
const failedCalls = new WeakMap<object, Error>();

let isWatching = false;

/** Starts to watch the requests of commands. Further calls do nothing. */
export function watchFetch(): void {
  if (isWatching) return;
  isWatching = true;
  channel("undici:request:create").subscribe((message) => {
    const { request } = message as { readonly request: object };
    if (runs.getStore() !== undefined) callStacks.set(request, captureStack());
  });
  channel("undici:request:error").subscribe((message) => {
    const { request, error } = message as { readonly request: object; readonly error: unknown };
    const stack = callStacks.get(request);
    if (stack !== undefined && typeof error === "object" && error !== null) failedCalls.set(error, stack);
  });
}

function captureStack(): Error {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = stackLimit;
  const stack = new Error("fetch");
  Error.stackTraceLimit = stackTraceLimit;
  return stack;
}

/** Where a command called the `fetch` that ended in this error; undefined for other errors. */
export function placeOfFetch(error: unknown): SourcePlace | undefined {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  const stack = typeof cause === "object" && cause !== null ? failedCalls.get(cause) : undefined;
  return stack === undefined ? undefined : placeOf(stack);
}
