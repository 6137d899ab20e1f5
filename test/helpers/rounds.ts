import { inject } from "vitest";
import type { Rounds } from "../rounds.ts";

declare module "vitest" {
  interface ProvidedContext {
    rounds: Rounds;
  }
}

/** The rounds of this run: those of CI, or the longer ones of `npm run check:long`. */
export const rounds = inject("rounds");

/** All cases in `npm run check:long`; in CI those with the given indexes. */
export function casesOf<T>(all: readonly T[], ...inCi: readonly number[]): readonly T[] {
  return rounds.everyCase ? all : all.filter((_, index) => inCi.includes(index));
}
