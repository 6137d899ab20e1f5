import { type Clock, systemClock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import { isLoopbackHost } from "../../wire/address-kinds.ts";
import { sendHttp } from "../../wire/http-client.ts";
import { askInBrowser, openRedirectDoor } from "./browser-grant.ts";
import {
  configuredClient,
  forgetClient,
  knownClient,
  type RegistrationRequest,
  registerClient,
} from "./client-registration.ts";
import { askForDevice } from "./device-grant.ts";
import { findSignIn, type SignInPlace } from "./discover-sign-in.ts";
import { type KeptSignIn, SignInMemory, type UpstreamSignIn } from "./kept-sign-in.ts";
import { type OAuthReach, openReach } from "./oauth-reach.ts";
import { quoteWords, SignInError } from "./sign-in-error.ts";
import { type GivenTokens, type OAuthClient, requestTokens } from "./token-request.ts";
import { parseChallenge } from "./upstream-challenge.ts";

/** Whoever signs in, at a terminal. */
export interface Person {
  say(text: string): void;
  /** Opens a page in their browser; undefined where they have none here. */
  readonly openPage: ((url: URL) => Promise<boolean>) | undefined;
}

const maxMinutes = 10;

/** What one sign-in works with. */
interface Visit {
  readonly upstream: UpstreamSignIn;
  readonly place: SignInPlace;
  readonly reach: OAuthReach;
  readonly scopes: readonly string[];
  readonly person: Person;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Signs in to an upstream and keeps its tokens in the home, where a daemon that runs already finds them. Throws a
 * SignInError, or a RuntimeError where the home cannot be used.
 */
export async function signIn(upstream: UpstreamSignIn, person: Person, signal: AbortSignal): Promise<void> {
  const { name, oauth = {}, clock = systemClock } = upstream;
  const url = toSafeUrl(upstream);
  const memory = new SignInMemory(upstream);
  const before = memory.read();
  const reach = await openReach(name, url);
  const { isAsked, header } = await knock(upstream, reach, signal);
  const challenge = parseChallenge(header);
  const place = await findSignIn({ url, reach, challenge, isAsked, lastIssuer: before?.issuer, signal });
  const scopes = chooseScopes(upstream, place, before);
  const limit = AbortSignal.timeout(maxMinutes * 60_000);
  const visit = { upstream, place, reach, scopes, person, clock, signal: AbortSignal.any([signal, limit]) };
  const grant = oauth.grant ?? (hasBrowser(person, place) ? "browser" : "device");
  try {
    const { client, tokens } = await grants[grant](visit);
    await memory.alone(clock, async () => memory.write(toKeep(place, { client, tokens, scopes })));
  } catch (error) {
    if (limit.aborted && !signal.aborted)
      throw new SignInError(`Nobody has signed in to ${name} within ${maxMinutes} minutes; begin again.`);
    throw error;
  }
  person.say(`Signed in to ${name}.\n`);
}

/** Tokens without a person: the client is known by its secret alone. */
export async function signInAsClient(visit: Omit<Visit, "person">): Promise<KeptSignIn> {
  const { place, scopes } = visit;
  return toKeep(place, { ...(await askAsClient(visit)), scopes });
}

/** Throws for an upstream that tokens must not be sent to. */
export function toSafeUrl({ name, url }: UpstreamSignIn): URL {
  const parsed = new URL(url);
  if (parsed.protocol !== "https:" && !isLoopbackHost(parsed.hostname))
    throw new SignInError(`${name} wants a token, and is reached without encryption; use its https address.`);
  return parsed;
}

/** What the config says, else what the upstream asks for, and in any case what was missing the last time. */
export function chooseScopes({ oauth = {} }: UpstreamSignIn, place: SignInPlace, before?: KeptSignIn): string[] {
  const isPerson = oauth.grant !== "client-credentials";
  const asked = [...place.scopes, ...(isPerson && place.offersOfflineAccess ? ["offline_access"] : [])];
  return [...new Set([...(oauth.scopes ?? asked), ...(before?.wanted ?? [])])];
}

/** A browser here; or where none is known of, one that the person has, when there is no other way. */
function hasBrowser({ openPage }: Person, { deviceEndpoint, authorizationEndpoint }: SignInPlace): boolean {
  return deviceEndpoint === undefined || (openPage !== undefined && authorizationEndpoint !== undefined);
}

interface Taken {
  readonly client: OAuthClient;
  readonly tokens: GivenTokens;
}

const grants: Record<"browser" | "device" | "client-credentials", (visit: Visit) => Promise<Taken>> = {
  browser: signInByBrowser,
  device: signInByDevice,
  "client-credentials": askAsClient,
};

async function signInByBrowser(visit: Visit): Promise<Taken> {
  const { upstream, place, reach, scopes, person, clock, signal } = visit;
  const { home, oauth = {}, name } = upstream;
  const named = configuredClient(oauth, place.authMethods);
  const known = named === undefined ? knownClient(home, place.issuer, "browser", clock.now()) : undefined;
  const door = await openRedirectDoor(known?.redirectUri);
  try {
    const usable = known?.redirectUri === door.uri ? known : undefined;
    const client = named ?? usable ?? (await register(visit, "browser", door.uri));
    const show = async (page: URL) => {
      person.say(`Sign in to ${name} with this page:\n\n  ${page.href}\n\n`);
      await person.openPage?.(page);
    };
    const form = await askInBrowser({ place, reach, clientId: client.id, scopes, door, show, signal });
    return { client, tokens: await redeem(visit, client, form) };
  } catch (error) {
    // The server may not know this client any more, and says so to the browser alone: the next time it is a new one.
    if (named === undefined) forgetClient(home, place.issuer, "browser");
    throw error;
  } finally {
    door.close();
  }
}

async function signInByDevice(visit: Visit): Promise<Taken> {
  const { upstream, place, person, clock } = visit;
  const { home, oauth = {}, name } = upstream;
  const named = configuredClient(oauth, place.authMethods);
  const known = named === undefined ? knownClient(home, place.issuer, "device", clock.now()) : undefined;
  try {
    const client = named ?? known ?? (await register(visit, "device", undefined));
    const show = (page: URL, code: string) =>
      person.say(
        `Sign in to ${name}, with any device, on this page:\n\n  ${page.href}\n\nand type this code: ${code}\n`,
      );
    return { client, tokens: await askForDevice({ ...visit, client, show }) };
  } catch (error) {
    if (named === undefined) forgetClient(home, place.issuer, "device");
    throw error;
  }
}

async function askAsClient(visit: Omit<Visit, "person">): Promise<Taken> {
  const { upstream, place, scopes } = visit;
  const client = configuredClient(upstream.oauth ?? {}, place.authMethods);
  if (client?.secret === undefined)
    throw new SignInError(
      `${upstream.name} is to be signed in to without a person, and that takes \`oauth.clientId\` and \`oauth.clientSecret\`.`,
    );
  const form = { grant_type: "client_credentials", ...(scopes.length > 0 && { scope: scopes.join(" ") }) };
  return { client, tokens: await redeem(visit, client, form) };
}

async function redeem(visit: Omit<Visit, "person">, client: OAuthClient, form: Readonly<Record<string, string>>) {
  const { place, reach, clock, signal } = visit;
  const said = { ...form, resource: place.resource };
  return await requestTokens({ endpoint: place.tokenEndpoint, reach, client, form: said, clock, signal });
}

async function register(visit: Visit, grant: RegistrationRequest["grant"], redirectUri: string | undefined) {
  const { upstream, place, reach, clock, signal } = visit;
  return await registerClient({ place, reach, home: upstream.home, grant, redirectUri, now: clock.now(), signal });
}

function toKeep(place: SignInPlace, got: Taken & { readonly scopes: readonly string[] }): KeptSignIn {
  const { issuer, resource, tokenEndpoint } = place;
  return { issuer, resource, tokenEndpoint: tokenEndpoint.href, ...got };
}

/** Asks without a token, to be told what is wanted. */
async function knock({ url, headers, name }: UpstreamSignIn, reach: OAuthReach, signal: AbortSignal) {
  try {
    const response = await sendHttp(new URL(url), {
      method: "POST",
      headers: { accept: "application/json, text/event-stream", "content-type": "application/json", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
      lookup: reach.lookup,
    });
    response.destroy();
    const { statusCode: status } = response;
    return { isAsked: status === 401 || status === 403, header: response.headers["www-authenticate"] };
  } catch (cause) {
    signal.throwIfAborted();
    throw new SignInError(`${name} cannot be reached: ${quoteWords(messageOf(cause))}.`, { isPassing: true, cause });
  }
}
