import { sleep, systemClock } from "../../clock.ts";
import { RequestError, RpcCode, UsageError } from "../../errors.ts";
import { fieldsOf, type Json, textOf } from "../../wire/json.ts";
import type { Peer } from "../../wire/peer.ts";
import { ConnectionError, cut, MalformedAnswer, ServerError } from "../../wire/peer-errors.ts";
import { metaKeys, toEnvelope } from "../../wire/request-envelope.ts";
import { legacyRevision, legacyRevisions, modernRevision, revisions, tasksExtension } from "../../wire/revisions.ts";
import type { ServerFacts } from "../client.ts";

/**
 * Which revision to speak, found out on one connection: `server/discover` of 2026-07-28 first, then `initialize`.
 *
 * The SDK's own client starts a second process to find that out over stdio, and refuses the handles of tasks; so both
 * are done here. Old servers meet an unknown first message in three ways: they answer with an error, they say nothing,
 * or they leave. An error is followed by `initialize`; after a while of silence `initialize` is sent as well, and then
 * its answer counts, unless it is an error or none; who has left is started again (by the caller of this) and asked in
 * the old way, unless it said that something else was wrong.
 */

/** As long as a busy machine may take to start a server; one that speaks both would be taken for an old one before. */
const silenceMs = 5_000;

/** What was agreed on. */
export interface Dialect {
  readonly revision: string;
  /** 2026-07-28: every request carries who asks, and there is no session. */
  readonly isModern: boolean;
  readonly facts: ServerFacts;
  readonly capabilities: Json;
}

export interface Introduction {
  readonly name: string;
  readonly version: string;
  /** Speak this one and no other. */
  readonly revision: string | undefined;
}

/** What a client of 2026-07-28 says with every request. */
export function envelope({ name, version }: Introduction, capabilities: Json): Json {
  return toEnvelope({ name, version }, capabilities);
}

/** What we declare, per request since 2026-07-28. */
export function modernCapabilities(canAsk: boolean): Json {
  return { extensions: { [tasksExtension]: {} }, ...(canAsk && { elicitation: { form: {} } }) };
}

/**
 * What we declare at a handshake, which no call can add to: one that is asked something without anybody to answer is
 * ended then.
 */
const legacyCapabilities: Json = { elicitation: {}, experimental: { "meanwhile/jobs": {} } };

export function checkRevision(revision: string | undefined): void {
  if (revision !== undefined && !revisions.includes(revision))
    throw new UsageError(`The revision ${cut(revision, 40)} is not known; known are ${revisions.join(", ")}.`);
}

/** Agrees on a revision. `mayProbe` is false for a server that has left when it was asked in the new way. */
export async function negotiate(
  peer: Peer,
  who: Introduction,
  mayProbe: boolean,
  signal: AbortSignal,
): Promise<Dialect> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  try {
    if (who.revision === modernRevision) return await discover(peer, who, either);
    if (who.revision !== undefined || !mayProbe) return await initialize(peer, who, either);
    const modern = discover(peer, who, either).catch((error: unknown) => {
      if (isOldServers(error)) return undefined;
      throw error;
    });
    const first = await Promise.race([modern, sleep(systemClock, silenceMs, either).then(() => "silent" as const)]);
    if (first !== undefined && first !== "silent") return first;
    const legacy = initialize(peer, who, either);
    if (first === undefined) return await legacy;
    // A server that was only slow hears both, and the later message decides for it: what it says to `initialize`
    // counts, while it says anything.
    const late = modern.then(
      async (dialect) => dialect && (await sleep(systemClock, silenceMs, either).then(() => dialect)),
    );
    return await Promise.race([legacy.catch(() => modern), late.then((dialect) => dialect ?? legacy)]).then(
      (dialect) => dialect ?? legacy,
    );
  } finally {
    stop.abort();
  }
}

/** True for what a server of an earlier revision says to `server/discover`. */
function isOldServers(error: unknown): boolean {
  if (error instanceof ServerError || error instanceof RequestError || error instanceof MalformedAnswer) return true;
  // Over HTTP it may say so without a message. Who refuses us, or is not there yet, will not take `initialize` either.
  return (
    error instanceof ConnectionError &&
    error.status !== undefined &&
    !error.isPassing &&
    error.status !== 401 &&
    error.status !== 403
  );
}

/**
 * True for a server that says it has failed, and not because of a message: started again it would fail again.
 * One that leaves without a word about it, or after a greeting, may well have left because of `server/discover`.
 */
export function isOwnFailure(error: unknown): boolean {
  const words = error instanceof ConnectionError ? (error.lastWords ?? "") : "";
  return (
    /error|exception|fatal|panic|cannot|can't|could not|failed|missing|not found|no such|usage:/i.test(words) &&
    !aboutMessages.test(words)
  );
}

const aboutMessages = /discover|initiali[sz]|\bmethod\b|\brequest\b|\bmessage\b|json-?rpc|protocol/i;

async function discover(peer: Peer, who: Introduction, signal: AbortSignal): Promise<Dialect> {
  const params = { _meta: envelope(who, modernCapabilities(true)) };
  const result = fieldsOf(await peer.request("server/discover", params, { signal, isStreamBound: true }));
  const versions = Array.isArray(result.supportedVersions) ? result.supportedVersions : [];
  if (!versions.includes(modernRevision))
    throw new ServerError({
      code: RpcCode.UnsupportedRevision,
      message: "Unsupported protocol version",
      data: { supported: versions },
    });
  await peer.link.begin(modernRevision);
  const capabilities = fieldsOf(result.capabilities);
  const hasTasks = fieldsOf(capabilities.extensions)[tasksExtension] !== undefined;
  const info = fieldsOf(fieldsOf(result._meta)[metaKeys.serverInfo]);
  const facts = toFacts(info, result.instructions, modernRevision, hasTasks ? modernRevision : "none");
  return { revision: modernRevision, isModern: true, facts, capabilities };
}

async function initialize(peer: Peer, who: Introduction, signal: AbortSignal): Promise<Dialect> {
  const wanted = who.revision ?? legacyRevision;
  const params = {
    protocolVersion: wanted,
    capabilities: legacyCapabilities,
    clientInfo: { name: who.name, version: who.version },
  };
  const result = fieldsOf(await peer.request("initialize", params, { signal }).catch(explain));
  const revision = textOf(result.protocolVersion) ?? "";
  if (!legacyRevisions.includes(revision) || (who.revision !== undefined && revision !== wanted))
    throw new ConnectionError(
      `The server wants to speak ${cut(revision || "no revision", 40)}, and we ${who.revision ?? revisions.join(", ")}.`,
      {
        isPassing: false,
      },
    );
  if (peer.link.kind !== "url") await peer.notify("notifications/initialized");
  await peer.link.begin(revision);
  const capabilities = fieldsOf(result.capabilities);
  const hasTasks =
    revision === legacyRevision && fieldsOf(fieldsOf(fieldsOf(capabilities.tasks).requests).tools).call !== undefined;
  return {
    revision,
    isModern: false,
    facts: toFacts(fieldsOf(result.serverInfo), result.instructions, revision, hasTasks ? legacyRevision : "none"),
    capabilities,
  };
}

/** What answers neither of the two ways to begin is no server we can speak with. */
function explain(error: unknown): never {
  const isStranger =
    error instanceof ConnectionError && error.status !== undefined && [400, 404, 405, 406, 415].includes(error.status);
  if (!isStranger) throw error;
  throw new ConnectionError(
    `No MCP server of ours answers there (HTTP status ${error.status}): the address may be wrong, or the server may speak the old HTTP+SSE transport, which is not supported.`,
    { isPassing: false, status: error.status ?? 0, cause: error },
  );
}

function toFacts(info: Json, instructions: unknown, revision: string, tasks: ServerFacts["tasks"]): ServerFacts {
  return {
    name: textOf(info.name) ?? "",
    version: textOf(info.version) ?? "",
    instructions: textOf(instructions),
    revision,
    tasks,
  };
}
