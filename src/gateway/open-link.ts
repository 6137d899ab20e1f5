import { UsageError } from "../errors.ts";
import { ConnectionError } from "../wire/peer-errors.ts";
import { startUpstream } from "./command-link.ts";
import { FoundLink } from "./found-link.ts";
import { HttpUpstream } from "./http-upstream.ts";
import { openSse } from "./sse-link.ts";
import type { OpenUpstreamLink } from "./upstream-link.ts";

/** Opens the way to an upstream, whatever it is. Every failure is a ConnectionError. */
export const openUpstreamLink: OpenUpstreamLink = async (address, events, { recordFolder } = {}) => {
  try {
    if (address.kind === "command") return await startUpstream(address, events, recordFolder);
    if (address.transport === "sse") return await openSse(address, events);
    return new (address.transport === "http" ? HttpUpstream : FoundLink)(address, events);
  } catch (cause) {
    if (!(cause instanceof UsageError)) throw cause;
    throw new ConnectionError(cause.message, { isUnsent: true, isPassing: false, cause });
  }
};
