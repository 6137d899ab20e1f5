import { type Budget, budgetOf } from "../host/budget.ts";
import type { LearnedLimit, LearnedLimits } from "../host/learned-limits.ts";
import { findHost, type HostLimit, type HostOverride, type HostProfile, isNamed } from "../host/profiles.ts";
import type { ClientRequest } from "./request.ts";

export interface HostLimitOptions {
  readonly hosts: Readonly<Record<string, HostOverride>>;
  /** Counts in place of what the client calls itself. */
  readonly hostName: string | undefined;
  /** No call stays open longer. */
  readonly keepInlineMs: number;
  /** Absent where nothing is learned. */
  readonly learnedLimits?: LearnedLimits | undefined;
}

type NamedLimit = HostLimit & { readonly host: string };
const namedLimits = new WeakMap<HostProfile, Readonly<Record<ClientRequest["door"], NamedLimit>>>();

/**
 * What this request's host does with a slow call; one object for a host, so that what was decided by it can be kept.
 */
export function limitOf(options: HostLimitOptions, { connection, client, door }: ClientRequest): NamedLimit {
  const name = hostNameOf(options, { connection, client });
  const profile = findHost(name, options.hosts);
  const { limits, name: host } = profile;
  const named = namedLimits.get(profile) ?? { stdio: { ...limits.stdio, host }, http: { ...limits.http, host } };
  namedLimits.set(profile, named);
  const learned = isNamed(name) ? learnedLimitOf(options, name.trim(), door) : undefined;
  return learned === undefined ? named[door] : shortened(named[door], learned, name);
}

/** What this request's host calls itself, or what it is called in its entry. */
export function hostNameOf(
  { hostName }: Pick<HostLimitOptions, "hostName">,
  { connection, client }: Pick<ClientRequest, "connection" | "client">,
): string | undefined {
  return connection.hostName ?? hostName ?? client.name;
}

/** A configured limit wins. */
function learnedLimitOf(
  { learnedLimits, hosts }: HostLimitOptions,
  name: string,
  door: ClientRequest["door"],
): LearnedLimit | undefined {
  const isConfigured = Object.hasOwn(hosts, name) && hosts[name]?.limitSeconds !== undefined;
  return isConfigured ? undefined : learnedLimits?.limitOf(name, door);
}

const shortenedLimits = new WeakMap<LearnedLimit, NamedLimit>();

/** A learned limit only ever shortens a wait. */
function shortened(known: NamedLimit, learned: LearnedLimit, name: string | undefined): NamedLimit {
  const { limitMs } = learned;
  if (known.limitMs !== undefined && known.limitMs <= limitMs) return known;
  const { isExtended } = known;
  const limit = shortenedLimits.get(learned) ?? { host: name?.trim() ?? "", limitMs, isExtended, isLearned: true };
  shortenedLimits.set(learned, limit);
  return limit;
}

/**
 * How long a follow-up tool may wait here; a client that sends a token with this call is taken to send one with the
 * next.
 */
export function budgetFor(options: HostLimitOptions, request: ClientRequest): Budget {
  return budgetOf(limitOf(options, request), request.progressToken !== undefined, options.keepInlineMs);
}
