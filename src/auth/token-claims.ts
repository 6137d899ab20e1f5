import { type Caller, userCaller } from "../command/caller.ts";
import { isObject, type Json, textOf } from "../wire/json.ts";
import { AuthenticationError } from "./authentication.ts";
import type { IssuerSettings } from "./issuers.ts";
import { onlyScopes, parseScopes } from "./rights.ts";

/** What the claims of a verified access token say about its caller. */

const scopeClaims = ["scope", "scp", "permissions"] as const;
/** RFC 9068, and the names that Microsoft, Keycloak and Okta use. */
const clientClaims = ["client_id", "azp", "appid", "cid"] as const;
const nameClaims = ["name", "preferred_username", "email"] as const;
/** PostgreSQL indexes no text of more than 2,704 bytes, and a caller key has two IDs at most. */
const maxIdBytes = 1_000;
const maxNameLength = 200;

/** The caller of a verified token. Throws an AuthenticationError where the claims do not say who that is. */
export function callerOfClaims(claims: Json, issuer: IssuerSettings): { caller: Caller; scopesFrom: string } {
  const subject = idOf(claims, ["sub"]);
  const client = idOf(claims, clientClaims);
  const groups = groupsOf(claims, issuer);
  const { scopes, scopesFrom } = scopesOf(claims, issuer, groups);
  const identity = {
    issuer: issuer.issuer,
    subject,
    client: subject === undefined || issuer.separateClients === true ? client : undefined,
  };
  if (subject === undefined && client === undefined)
    throw new AuthenticationError("invalid", "The access token names neither a user (`sub`) nor a client.");
  if (issuer.separateClients === true && client === undefined)
    throw new AuthenticationError("invalid", "The access token does not name the client that it was issued to.");
  const name = nameClaims.map((claim) => textOf(claims[claim])).find((text) => text !== undefined && text !== "");
  const details = {
    ...(name !== undefined && { name: name.replace(controls, " ").slice(0, maxNameLength).toWellFormed() }),
    ...(client !== undefined && { client }),
  };
  return { caller: userCaller(identity, { ...details, scopes, groups }), scopesFrom };
}

/** True for an ID token, which tells a client who its user is and opens no API. */
export function isIdToken(claims: Json): boolean {
  return ["at_hash", "c_hash", "nonce"].some((claim) => Object.hasOwn(claims, claim)) || claims.typ === "ID";
}

/** Control characters; PostgreSQL stores no NUL. */
const controls = /[\u0000-\u001f\u007f-\u009f]/g;

/** The first of some claims that a token has. */
function idOf(claims: Json, names: readonly string[]): string | undefined {
  const id = names.map((name) => claims[name]).find((value) => value !== undefined && value !== null && value !== "");
  if (id === undefined) return undefined;
  const isUsable =
    typeof id === "string" && Buffer.byteLength(id) <= maxIdBytes && id.isWellFormed() && id.search(controls) === -1;
  if (isUsable) return id;
  throw new AuthenticationError(
    "invalid",
    `The access token has no usable ${names.map((name) => `\`${name}\``).join(", ")}.`,
  );
}

function groupsOf(claims: Json, { groupsClaim = "groups" }: IssuerSettings): string[] {
  const value = claimAt(claims, groupsClaim);
  const groups = (Array.isArray(value) ? value : [value]).filter((one) => typeof one === "string" && one !== "");
  return [...new Set(groups as string[])];
}

/** A claim by its name, which may have dots in it, or by the path to it. */
function claimAt(claims: Json, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split(".")) value = isObject(value) && Object.hasOwn(value, part) ? value[part] : undefined;
  return value;
}

function scopesOf(claims: Json, { scopesClaim, grant = [] }: IssuerSettings, groups: readonly string[]) {
  const names = scopesClaim === undefined ? scopeClaims : [scopesClaim];
  const claim = names.find((name) => isScopes(claimAt(claims, name)));
  const value = claim === undefined ? "" : claimAt(claims, claim);
  const own = Array.isArray(value) ? onlyScopes(value) : parseScopes(String(value));
  const granted = grant
    .filter((rule) => rule.groups === undefined || rule.groups.some((group) => groups.includes(group)))
    .flatMap((rule) => rule.scopes);
  // The subject of "has …", so it is singular.
  const only = names.length === 1 ? names[0] : claim;
  const read = only === undefined ? `each of the claims ${quoteAll(names)}` : `the claim \`${only}\``;
  return {
    scopes: [...new Set([...own, ...granted])],
    scopesFrom: grant.length === 0 ? read : `${read}, with the setting \`grant\` of its issuer,`,
  };
}

const isScopes = (value: unknown) => typeof value === "string" || Array.isArray(value);

function quoteAll(names: readonly string[]): string {
  const quoted = names.map((name) => `\`${name}\``);
  return `${quoted.slice(0, -1).join(", ")} and ${quoted.at(-1)}`;
}
