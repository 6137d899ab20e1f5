import { RequestError } from "../../errors.ts";
import type { Logger } from "../../log.ts";

/**
 * A connection that is closed, or a task that was pruned, leaves nobody to be told; anything else is the operator's to
 * know.
 */
export function noteUnlessGone(error: unknown, closed: AbortSignal, log: Logger): void {
  if (!closed.aborted && !(error instanceof RequestError)) log.warn("a task is no longer followed", { error });
}
