import { type Clock, sleep } from "../clock.ts";
import type { Message } from "../wire/message.ts";
import { ConnectionError } from "../wire/peer-errors.ts";

/** What may be sent again over HTTP without asking anybody: what was certainly not worked on, and what only looks. */

/** How often, and for how long in all, a request waits that is too much for the server right now. */
const maxPauses = 3;
const maxPauseMs = 60_000;
const defaultPauseMs = 1_000;
const looking =
  /^(ping|server\/discover|[a-z]+(\/templates)?\/list|tasks\/get|tasks\/result|resources\/read|prompts\/get)$/;

/** True for a request that changes nothing. */
export function isLooking({ method = "" }: Message): boolean {
  return looking.test(method);
}

/** Sends a request, and again after a pause where the server asks for one before it has done anything. */
export async function withPauses(
  message: Message,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
  send: () => Promise<void>,
): Promise<void> {
  let leftMs = maxPauseMs;
  for (let pauses = 0; ; pauses++) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof ConnectionError) || signal.aborted || pauses === maxPauses) throw error;
      const pauseMs = pauseAfter(error, message, pauses);
      if (pauseMs === undefined || pauseMs > leftMs) throw error;
      leftMs -= pauseMs;
      await sleep(clock, pauseMs, signal);
    }
  }
}

/** Undefined where it may have been worked on. */
function pauseAfter({ status, retryAfterMs }: ConnectionError, message: Message, pauses: number): number | undefined {
  if (status === 429) return retryAfterMs ?? defaultPauseMs * 2 ** pauses;
  return status === 503 && isLooking(message) ? retryAfterMs : undefined;
}
