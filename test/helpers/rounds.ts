import { inject } from "vitest";
import type { Rounds } from "../rounds.ts";

declare module "vitest" {
  interface ProvidedContext {
    rounds: Rounds;
  }
}

/** The rounds of this run: those of CI, or the longer ones of `npm run check:long`. */
export const rounds = inject("rounds");
