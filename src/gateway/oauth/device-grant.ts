import { type Clock, sleep } from "../../clock.ts";
import { numberOf, textOf } from "../../wire/json.ts";
import type { SignInPlace } from "./discover-sign-in.ts";
import type { OAuthReach } from "./oauth-reach.ts";
import { askOAuth } from "./oauth-request.ts";
import { quoteWords, SignInError } from "./sign-in-error.ts";
import { asClient, type GivenTokens, type OAuthClient, requestTokens, toRefusal } from "./token-request.ts";

export interface DeviceGrant {
  readonly place: SignInPlace;
  readonly reach: OAuthReach;
  readonly client: OAuthClient;
  readonly scopes: readonly string[];
  readonly clock: Clock;
  /** Shows the person where to go, with any device, and what to type there. */
  readonly show: (url: URL, code: string) => void;
  readonly signal: AbortSignal;
}

const maxSeconds = 1_800;
const usualInterval = 5;
/** What servers ask for that are asked too often (RFC 8628, 3.5). */
const slowDownSeconds = 5;

/** Signs in by a code that a person types elsewhere (RFC 8628). */
export async function askForDevice(grant: DeviceGrant): Promise<GivenTokens> {
  const { place, reach, client, scopes, clock, signal } = grant;
  if (place.deviceEndpoint === undefined)
    throw new SignInError(`The authorization server of ${reach.name} knows no sign-in without a browser.`);
  const asked = { resource: place.resource, ...(scopes.length > 0 && { scope: scopes.join(" ") }) };
  const { fields, headers } = asClient(client, asked);
  const text = new URLSearchParams(fields).toString();
  const request = { body: { type: "form" as const, text }, headers, signal };
  const { status, body = {} } = await askOAuth(place.deviceEndpoint, reach, request);
  if (status < 200 || status >= 300) throw toRefusal({ status, body, reach, secrets: [client.secret ?? ""] });
  const deviceCode = textOf(body.device_code);
  const userCode = textOf(body.user_code);
  const page = textOf(body.verification_uri_complete) ?? textOf(body.verification_uri);
  if (deviceCode === undefined || userCode === undefined || page === undefined)
    throw new SignInError(`The authorization server of ${reach.name} gave no code to sign in with.`);
  grant.show(reach.parse(page, "its page to sign in on"), quoteWords(userCode));
  const endsAt = clock.now() + Math.min(numberOf(body.expires_in) ?? maxSeconds, maxSeconds) * 1000;
  const interval = Math.min(Math.max(numberOf(body.interval) ?? usualInterval, 1), 60);
  return await poll(grant, { deviceCode, endsAt, interval });
}

async function poll(
  { place, reach, client, clock, signal }: DeviceGrant,
  {
    deviceCode,
    endsAt,
    interval: first,
  }: { readonly deviceCode: string; readonly endsAt: number; readonly interval: number },
): Promise<GivenTokens> {
  const form = {
    grant_type: "urn:ietf:params:oauth:grant-type:device_code",
    device_code: deviceCode,
    resource: place.resource,
  };
  for (let interval = first; clock.now() < endsAt; ) {
    await sleep(clock, interval * 1000, signal);
    try {
      return await requestTokens({ endpoint: place.tokenEndpoint, reach, client, form, clock, signal });
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      // A network that fails for a moment is asked less often, too.
      if (error.code === "slow_down" || error.isPassing) interval += slowDownSeconds;
      else if (error.code !== "authorization_pending") throw error;
    }
  }
  throw new SignInError(`Nobody has typed the code for ${reach.name} in time; begin again.`);
}
