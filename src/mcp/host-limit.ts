import { type Budget, budgetOf } from "../host/budget.ts";
import { findHost, type HostLimit, type HostOverride, type HostProfile } from "../host/profiles.ts";
import type { ClientRequest } from "./request.ts";

export interface HostLimitOptions {
  readonly hosts: Readonly<Record<string, HostOverride>>;
  /** Counts in place of what the client calls itself. */
  readonly hostName: string | undefined;
  /** No call stays open longer. */
  readonly keepInlineMs: number;
}

type NamedLimit = HostLimit & { readonly host: string };
const namedLimits = new WeakMap<HostProfile, Readonly<Record<ClientRequest["door"], NamedLimit>>>();

/**
 * What this request's host does with a slow call; one object for a host, so that what was decided by it can be kept.
 */
export function limitOf(options: HostLimitOptions, { connection, client, door }: ClientRequest): NamedLimit {
  const profile = findHost(connection.hostName ?? options.hostName ?? client.name, options.hosts);
  const { limits, name: host } = profile;
  const named = namedLimits.get(profile) ?? { stdio: { ...limits.stdio, host }, http: { ...limits.http, host } };
  namedLimits.set(profile, named);
  return named[door];
}

/**
 * How long a follow-up tool may wait here; a client that sends a token with this call is taken to send one with the
 * next.
 */
export function budgetFor(options: HostLimitOptions, request: ClientRequest): Budget {
  return budgetOf(limitOf(options, request), request.progressToken !== undefined, options.keepInlineMs);
}
