import { z } from "zod";
import { reasonOf } from "./reason.ts";

/** What went wrong with one file, while the others went on. */
export interface Trouble {
  readonly path: string;
  readonly reason: string;
}

/** How many are listed; all are counted. */
const maxListed = 100;

/** The two fields by which a command's output tells of single files that failed. */
export const troubleFields = {
  errors: z
    .array(z.object({ path: z.string(), reason: z.string() }))
    .describe(`Files that failed, the first ${maxListed} of them`),
  errors_total: z.number().int(),
};

/** How many names a walk has passed over because they are closed to whoever asked. */
export const hiddenField = {
  hidden: z.number().int(),
};

/** Collects what failed without growing beyond bounds. */
export class Troubles {
  readonly #listed: Trouble[] = [];
  #total = 0;

  add(path: string, error: unknown): void {
    this.#total += 1;
    if (this.#listed.length < maxListed)
      this.#listed.push({ path, reason: typeof error === "string" ? error : reasonOf(error) });
  }

  get total(): number {
    return this.#total;
  }

  /** As `troubleFields` describe it. */
  toOutput(): { errors: Trouble[]; errors_total: number } {
    return { errors: [...this.#listed], errors_total: this.#total };
  }
}
