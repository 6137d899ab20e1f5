import type { Caller } from "../command/caller.ts";
import { CommandError, messageOf, ProtocolError, RpcCode } from "../errors.ts";

/**
 * True for the local user. The reason why an upstream fails may name files, addresses and variables of this machine:
 * other callers are told that it fails, and the log has the reason.
 */
export function seesReasons({ kind }: Caller): boolean {
  return kind === "local";
}

/** What callers who are not told the reason are told of an upstream that cannot be used. */
export function describeUnusable(upstream: string): string {
  return `The upstream ${upstream} cannot be used now.`;
}

/** An upstream cannot be used. The message is for the local user and the log. */
export class UpstreamDown extends CommandError {
  override readonly name = "UpstreamDown";
  readonly #upstream: string;

  constructor(upstream: string, cause: unknown) {
    const why = messageOf(cause);
    super(why.startsWith(`The upstream ${upstream}`) ? why : `The upstream ${upstream} cannot be used. ${why}`, {
      cause,
    });
    this.#upstream = upstream;
  }

  messageFor(caller: Caller): string {
    return seesReasons(caller) ? this.message : describeUnusable(this.#upstream);
  }
}

/** Turns an `UpstreamDown` into an error of the protocol, with the sentence for this caller. */
export async function forClient<T>(asking: Promise<T>, caller: Caller): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    throw error instanceof UpstreamDown ? new ProtocolError(RpcCode.Internal, error.messageFor(caller)) : error;
  }
}
