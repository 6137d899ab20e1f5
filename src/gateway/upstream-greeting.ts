import { type Clock, sleep } from "../clock.ts";
import { ProtocolError, RpcCode } from "../errors.ts";
import { type GuestEra, hangUpCapability } from "../mcp/guest-host.ts";
import { fieldsOf, type Json, listOf, textOf } from "../wire/json.ts";
import { ConnectionError, cut, MalformedAnswer } from "../wire/peer-errors.ts";
import { metaKeys, toEnvelope } from "../wire/request-envelope.ts";
import { legacyRevision, legacyRevisions, modernRevision, revisions } from "../wire/revisions.ts";
import { declaredTo } from "./declared-to.ts";

/** How an upstream has introduced itself, whatever it speaks. */
export interface UpstreamHello {
  readonly revision: string;
  readonly serverInfo: Json;
  readonly instructions?: string;
  readonly capabilities: Json;
}

/** What the greeting is done with: requests that carry nobody's call. */
interface Greeter {
  readonly clock: Clock;
  ask(method: string, params: Json, signal: AbortSignal): Promise<Json>;
  notify(method: string): unknown;
}

interface GreetingTerms {
  /** What our own client speaks. */
  readonly wanted: GuestEra;
  /** What the upstream is known to speak with such clients. */
  readonly known: GuestEra | undefined;
  /** Declared at a handshake, once for all calls. */
  readonly capabilities: Json;
  readonly signal: AbortSignal;
}

/** As long as a busy machine may take to start a server that then says nothing to what it does not know. */
const silenceMs = 5_000;

export const ownInfo = { name: "meanwhile", version: "0" };

/**
 * Agrees with an upstream on what to speak: what our own client speaks, where the upstream can. No call is ever sent to
 * find that out.
 */
export async function greetUpstream(
  greeter: Greeter,
  { wanted, known, ...terms }: GreetingTerms,
): Promise<UpstreamHello> {
  if (known !== undefined && known !== wanted)
    return await (known === "modern" ? discover(greeter, terms.signal) : initialize(greeter, terms));
  if (wanted === "modern") return await discoverFirst(greeter, terms);
  try {
    return await initialize(greeter, terms);
  } catch (error) {
    if (!isOfAnotherEra(error)) throw error;
    return await discover(greeter, terms.signal).catch(() => Promise.reject(error));
  }
}

/** Old servers meet a method that they do not know in three ways: with an error, with silence, or they leave. */
async function discoverFirst(greeter: Greeter, terms: Omit<GreetingTerms, "wanted" | "known">): Promise<UpstreamHello> {
  const stop = new AbortController();
  const either = { ...terms, signal: AbortSignal.any([terms.signal, stop.signal]) };
  try {
    const modern = discover(greeter, either.signal).catch((error: unknown) => {
      if (isOfAnotherEra(error)) return undefined;
      throw error;
    });
    const silence = sleep(greeter.clock, silenceMs, either.signal).then(
      () => "silent" as const,
      () => undefined,
    );
    const first = await Promise.race([modern, silence]);
    if (first !== undefined && first !== "silent") return first;
    const legacy = initialize(greeter, either);
    if (first === undefined) return await legacy;
    // One that was only slow hears both, and what it says to the later of them counts.
    return await legacy.catch(async (error: unknown) => {
      const late = await modern;
      if (late === undefined) throw error;
      return late;
    });
  } finally {
    stop.abort();
  }
}

/** Over HTTP a server may refuse a method that it does not know without a message of its own. */
function isOfAnotherEra(error: unknown): boolean {
  if (error instanceof ProtocolError || error instanceof MalformedAnswer) return true;
  return (
    error instanceof ConnectionError &&
    error.status !== undefined &&
    !error.isPassing &&
    error.status !== 401 &&
    error.status !== 403
  );
}

async function discover(greeter: Greeter, signal: AbortSignal): Promise<UpstreamHello> {
  const result = await greeter.ask("server/discover", { _meta: toEnvelope(ownInfo, {}) }, signal);
  if (!listOf(result.supportedVersions).includes(modernRevision))
    throw new ProtocolError(RpcCode.UnsupportedRevision, "Unsupported protocol version");
  return {
    revision: modernRevision,
    serverInfo: fieldsOf(fieldsOf(result._meta)[metaKeys.serverInfo]),
    ...instructionsIn(result),
    capabilities: fieldsOf(result.capabilities),
  };
}

async function initialize(
  greeter: Greeter,
  { capabilities, signal }: Omit<GreetingTerms, "wanted" | "known">,
): Promise<UpstreamHello> {
  // Whoever its client is, and whatever that speaks.
  const declared = { ...declaredTo(capabilities), experimental: { [hangUpCapability]: {} } };
  const params = { protocolVersion: legacyRevision, capabilities: declared, clientInfo: ownInfo };
  const result = await greeter.ask("initialize", params, signal);
  const revision = textOf(result.protocolVersion) ?? "";
  if (!legacyRevisions.includes(revision))
    throw new ConnectionError(
      `It wants to speak ${cut(revision || "no revision", 40)}, and we ${revisions.join(", ")}.`,
      { isPassing: false, isUnsent: true },
    );
  greeter.notify("notifications/initialized");
  return {
    revision,
    serverInfo: fieldsOf(result.serverInfo),
    ...instructionsIn(result),
    capabilities: fieldsOf(result.capabilities),
  };
}

/** What is not said is not there: kept and read again it is the same. */
function instructionsIn(result: Json): { readonly instructions?: string } {
  const instructions = textOf(result.instructions);
  return instructions === undefined ? {} : { instructions };
}
