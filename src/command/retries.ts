import { type Clock, sleep, toTimestamp } from "../clock.ts";
import { Declined } from "../errors.ts";
import { type FailureCause, finished, type Outcome, type RunMessage } from "./outcome.ts";

/** How often a failed run is tried again: `maxAttempts` in all, after `backoffMs`, then twice that, and so on. */
export interface RetryRules {
  readonly maxAttempts: number;
  readonly backoffMs: number;
}

/** The attempts before this one: how many failed, the sum of their durations, and one message for each. */
export interface EarlierAttempts {
  readonly count: number;
  readonly spentMs: number;
  readonly messages: readonly RunMessage[];
}

export const noEarlierAttempts: EarlierAttempts = { count: 0, spentMs: 0, messages: [] };

const maxBackoffMs = 60 * 60 * 1000;
/** Characters of an earlier attempt's error that are kept. */
const maxErrorChars = 500;

/** Milliseconds until the next attempt; undefined when this failure is final. `attempts` counts the failed one. */
export function retryDelayMs(
  { maxAttempts, backoffMs }: RetryRules,
  attempts: number,
  failure: { readonly ending: string; readonly cause?: FailureCause | "interrupted"; readonly error?: unknown },
): number | undefined {
  const { ending, cause, error } = failure;
  // Another attempt would get the same no.
  const mayHelp = ending === "failed" && (cause === "command" || cause === "timeout") && !(error instanceof Declined);
  if (!mayHelp || attempts >= maxAttempts) return undefined;
  return Math.min(backoffMs * 2 ** (attempts - 1), maxBackoffMs);
}

/** What is said of a failed attempt that is followed by another. */
export function describeRetry(attempt: number, message: string, delayMs: number): string {
  const excerpt = message.length > maxErrorChars ? `${message.slice(0, maxErrorChars)}…` : message;
  return `Attempt ${attempt} failed (${excerpt}); trying again in ${Math.round(delayMs / 1000)} s.`;
}

/** The earlier attempts of the next run, with the one that has just failed. */
export function addFailed(
  { spentMs, messages }: EarlierAttempts,
  { count, durationMs, why, at }: { count: number; durationMs: number; why: string; at: number },
): EarlierAttempts {
  const message: RunMessage = { type: "warning", text: why, timestamp: toTimestamp(at) };
  return { count, spentMs: spentMs + durationMs, messages: [...messages, message] };
}

/** The outcome of all attempts together: the last one's result, with every attempt counted. */
export function withEarlier(outcome: Outcome, { count, spentMs, messages }: EarlierAttempts, name: string): Outcome {
  if (count === 0) return outcome;
  const durationMs = outcome.durationMs + spentMs;
  const ownText = finished(name, outcome.durationMs);
  const own = outcome.messages.map((message) =>
    message.type === "success" && message.text === ownText ? { ...message, text: finished(name, durationMs) } : message,
  );
  return { ...outcome, messages: [...messages, ...own], durationMs, attempts: count + 1 };
}

interface RetriedRun {
  readonly name: string;
  readonly rules: RetryRules;
  readonly clock: Clock;
  /** Ends the wait for the next attempt. That attempt then finds out itself that it was stopped. */
  readonly stopped: () => AbortSignal;
  readonly run: (attempt: number) => Outcome | Promise<Outcome>;
  /** Called with a sentence before each wait, and when the next attempt begins. */
  readonly onRetry: (text: string) => void | Promise<void>;
}

/** Runs until an attempt succeeds or the rules allow no other. Answers at once where the first attempt does. */
export function runWithRetries(retried: RetriedRun): Outcome | Promise<Outcome> {
  const first = retried.run(1);
  const isFinal = !(first instanceof Promise) && retryDelayMs(retried.rules, 1, first) === undefined;
  return retried.rules.maxAttempts === 1 || isFinal ? first : retryUntilFinal(first, retried);
}

async function retryUntilFinal(first: Outcome | Promise<Outcome>, retried: RetriedRun): Promise<Outcome> {
  const { name, rules, clock, stopped, run, onRetry } = retried;
  let earlier = noEarlierAttempts;
  let outcome = await first;
  for (let attempt = 1; ; attempt++) {
    const delayMs = retryDelayMs(rules, attempt, outcome);
    if (delayMs === undefined || outcome.ending !== "failed") return withEarlier(outcome, earlier, name);
    const why = describeRetry(attempt, outcome.message, delayMs);
    earlier = addFailed(earlier, { count: attempt, durationMs: outcome.durationMs, why, at: clock.now() });
    await onRetry(why);
    await sleep(clock, delayMs, stopped()).catch(() => undefined);
    if (stopped().aborted) return { ...withEarlier(await run(attempt + 1), earlier, name), attempts: attempt };
    await onRetry(`Running attempt ${attempt + 1} of ${rules.maxAttempts}.`);
    outcome = await run(attempt + 1);
  }
}
