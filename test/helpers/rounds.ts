import { inject } from "vitest";
import type { Rounds } from "../rounds.ts";

declare module "vitest" {
  interface ProvidedContext {
    rounds: Rounds;
  }
}

/** The rounds of this run: those of CI, or the longer ones of `npm run check:long`. */
export const rounds = inject("rounds");

/** The cases with the given indexes, and the first `rounds.furtherCases` of the others. */
export function casesOf<T>(all: readonly T[], ...indexes: readonly number[]): readonly T[] {
  const others = all.filter((_, index) => !indexes.includes(index)).slice(0, rounds.furtherCases);
  return all.filter((each, index) => indexes.includes(index) || others.includes(each));
}
