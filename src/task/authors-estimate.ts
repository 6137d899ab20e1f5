import type { Command } from "../command/command.ts";
import type { CallFacts } from "../command/context.ts";
import { validate } from "../command/schema.ts";

export interface AuthorsEstimate {
  readonly ms?: number;
  readonly work?: number;
  /** It never ends by itself. */
  readonly isEndless?: true;
}

/** The input as `run` gets it, where that can be told at once; what does not fit will be refused anyway. */
function parsed(command: Command, input: unknown): unknown {
  const checked = command.input === undefined ? undefined : validate(command.input, input ?? {});
  return checked === undefined || checked instanceof Promise || !checked.ok ? input : checked.value;
}

/** A year: nobody waits longer, and whoever says more has meant milliseconds, or divided by nothing. */
const maxEstimateSeconds = 31_536_000;

/**
 * What the author says about a run's length: milliseconds, or a size. What is neither, or throws, says nothing; `onOdd`
 * hears what is wrong with it.
 */
export function authorsEstimate(
  command: Command,
  input: unknown,
  call: CallFacts,
  onOdd: (sentence: string) => void = () => {},
): AuthorsEstimate | undefined {
  let said: unknown;
  try {
    said = command.estimate?.(parsed(command, input) as never, call);
  } catch {
    return undefined; // An estimate is a courtesy: one that fails must not fail the call.
  }
  const { work } = (typeof said === "object" && said !== null ? said : {}) as { readonly work?: unknown };
  if (said === Number.POSITIVE_INFINITY) return { isEndless: true };
  if (said === undefined || work === 0) return undefined;
  if (isWithin(said, maxEstimateSeconds)) return { ms: said * 1000 };
  if (isWithin(work, Number.MAX_SAFE_INTEGER)) return { work };
  const shown = work === undefined ? String(said) : `{ work: ${String(work)} }`;
  onOdd(
    `\`estimate\` gave ${shown}, which is left out; it must give seconds from 0 to ${maxEstimateSeconds}, or { work } with a number above 0.`,
  );
  return undefined;
}

function isWithin(value: unknown, max: number): value is number {
  return typeof value === "number" && value >= 0 && value <= max;
}
