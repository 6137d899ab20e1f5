import { messageOf, RuntimeError } from "../errors.ts";
import { placeOfFetch } from "./fetch-places.ts";
import { describePlace, placeOf } from "./place.ts";

const maxCauses = 10;
const maxChars = 2_000;

/**
 * An error and the errors that caused it, one a line, without stacks; with the place in the author's files, if wanted.
 * Undefined where that says no more than the error's own message.
 */
export function describeCauses(error: unknown, { withPlace }: { readonly withPlace: boolean }): string | undefined {
  const place = withPlace ? firstPlace(error) : undefined;
  const causes = chainOf(error);
  if (causes.length <= 1 && place === undefined) return undefined;
  const lines = causes.map((cause, at) => `${at === 0 ? "" : "caused by "}${describe(cause)}`);
  return [...lines, ...(place === undefined ? [] : [`at ${place}`])].join("\n");
}

/** What Node's `fetch` says of every failed connection, and of every broken response body. */
const fetchMessages = ["fetch failed", "terminated"];

/**
 * The message of an error that a command threw. The two messages of `fetch` name neither the address nor the reason, so
 * those of their cause are added: `fetch failed: connect ECONNREFUSED 127.0.0.1:9911`.
 */
export function messageWithCause(error: unknown): string {
  const message = messageOf(error);
  if (!(error instanceof TypeError) || !fetchMessages.includes(message)) return message;
  const causes = chainOf(error)
    .slice(1)
    .map(describeConnection)
    .filter((text) => text !== "");
  return [message, ...causes].join(": ");
}

/** A name with several addresses fails with one error for each of them, and no message of its own. */
function describeConnection(error: unknown): string {
  const { errors } = (error ?? {}) as { readonly errors?: unknown };
  const each = error instanceof AggregateError && error.message === "" && Array.isArray(errors) ? errors : [error];
  return each.map(messageOf).join(", ").slice(0, maxChars);
}

/** Ends before an error that is for the operator: it names paths, and stands in the log. */
function chainOf(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (
    let next = error;
    next != null && !(next instanceof RuntimeError) && chain.length < maxCauses && !chain.includes(next);
    next = causeOf(next)
  )
    chain.push(next);
  return chain;
}

/** An author's error may have a `cause` of its own making. */
function causeOf(error: unknown): unknown {
  try {
    return (error as { readonly cause?: unknown }).cause;
  } catch {
    return undefined;
  }
}

function describe(error: unknown): string {
  try {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : messageOf(error);
    return text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
  } catch {
    return "an error without a text";
  }
}

function firstPlace(error: unknown): string | undefined {
  for (const cause of chainOf(error)) {
    const place = placeOf(cause) ?? placeOfFetch(cause);
    if (place !== undefined) return describePlace(place);
  }
  return undefined;
}
