import type { AccessRule } from "../auth/access.ts";
import {
  type IssuerSettings,
  isIssuerUrl,
  isPublicUrl,
  isSecureUrl,
  type ScopeGrant,
  signatureAlgorithms,
} from "../auth/issuers.ts";
import { builtInScopes } from "../auth/rights.ts";
import { isToolPattern, toolPatternForm } from "../auth/tool-pattern.ts";
import { isScope } from "../command/command.ts";
import type { AuthConfig } from "../config.ts";
import type { Field } from "./check-config.ts";

/** What a config may say about callers over HTTP. */

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isFilledList = (value: unknown, check: (one: unknown) => boolean) =>
  Array.isArray(value) && value.length > 0 && value.every(check);

const claim: Field = { check: isText, expected: "the name of a claim" };

const ownScopes: readonly unknown[] = Object.values(builtInScopes);
const isOfMeanwhile = (value: unknown) => typeof value === "string" && value.startsWith("meanwhile:");
const isKnownScope = (value: unknown) => isScope(value) && (!isOfMeanwhile(value) || ownScopes.includes(value));

/** A misspelt scope of Meanwhile would give nothing, or close a tool to everyone. */
const describeScopes = (expected: string) => (value: unknown) =>
  Array.isArray(value) && value.some((one) => isOfMeanwhile(one) && !isKnownScope(one))
    ? `${expected}; those that begin with meanwhile: are ${ownScopes.join(", ")}`
    : expected;

const grantFields: Record<keyof ScopeGrant, Field> = {
  groups: { check: (value) => isFilledList(value, isText), expected: "a list of groups that is not empty" },
  scopes: {
    check: (value) => isFilledList(value, isKnownScope),
    expected: describeScopes("a list of scopes that is not empty"),
  },
};

const issuerFields: Record<keyof IssuerSettings, Field> = {
  issuer: {
    check: (value) => isText(value) && isIssuerUrl(value),
    expected: "an https URL without a query, exactly as in the `iss` claim of its tokens (http only for this machine)",
  },
  audience: {
    check: (value) => isText(value) || isFilledList(value, isText),
    expected: "text, or a list of texts that is not empty",
  },
  jwksUri: {
    check: (value) => isText(value) && isSecureUrl(value),
    expected: "an https URL (http only for this machine)",
  },
  algorithms: {
    check: (value) => isFilledList(value, (one) => signatureAlgorithms.includes(one as string)),
    expected: `a list of ${signatureAlgorithms.join(", ")}`,
  },
  scopesClaim: claim,
  groupsClaim: claim,
  separateClients: { check: (value) => typeof value === "boolean", expected: "true or false" },
  grant: {
    check: Array.isArray,
    expected: "a list of { groups, scopes }",
    each: {
      check: (value) => isObject(value) && "scopes" in value && value.scopes !== undefined,
      expected: "{ groups, scopes }, where `groups` may be left out",
      fields: grantFields,
    },
  },
};

const accessFields: Record<keyof AccessRule, Field> = {
  tools: { check: isToolPattern, expected: toolPatternForm },
  scopes: {
    check: (value) => Array.isArray(value) && value.every(isKnownScope),
    expected: describeScopes('a list of scopes without spaces, e.g. ["repo:admin"]'),
  },
  groups: {
    check: (value) => isFilledList(value, isText),
    expected: 'a list of one or more groups, e.g. ["ops"]',
  },
};

const authFields: Record<keyof AuthConfig, Field> = {
  issuers: {
    check: (value) => Array.isArray(value) && repeatedIssuer(value) === undefined,
    expected: (value) =>
      Array.isArray(value)
        ? `a list without two entries of one issuer, and has two of ${JSON.stringify(repeatedIssuer(value))}`
        : "a list of { issuer, audience, … }",
    each: {
      check: (value) => isObject(value) && "issuer" in value && value.issuer !== undefined,
      expected: "an object with `issuer`, the URL of an authorization server",
      fields: issuerFields,
    },
  },
  access: {
    check: (value) => Array.isArray(value) && repeatedPattern(value) === undefined,
    expected: describeAccess,
    each: {
      check: (value) => isObject(value) && "tools" in value,
      expected: `{ ${Object.keys(accessFields).join(", ")} } with at least \`tools\``,
      fields: accessFields,
    },
  },
  listUngranted: { check: (value) => typeof value === "boolean", expected: "true or false" },
};

/** A pattern that two rules of `access` have. */
function repeatedPattern(rules: readonly unknown[]): string | undefined {
  const patterns = rules.map((rule) => (isObject(rule) ? (rule as Partial<AccessRule>).tools : undefined));
  return patterns.find((pattern, at) => pattern !== undefined && patterns.indexOf(pattern) !== at);
}

function describeAccess(value: unknown): string {
  const repeated = Array.isArray(value) ? repeatedPattern(value) : undefined;
  return `a list of { ${Object.keys(accessFields).join(", ")} }${repeated === undefined ? "" : `, each pattern once; ${JSON.stringify(repeated)} is there twice`}`;
}

function repeatedIssuer(issuers: readonly unknown[]): unknown {
  const names = issuers.map((one) => (isObject(one) && "issuer" in one ? one.issuer : undefined));
  return names.find((name, at) => name !== undefined && names.indexOf(name) !== at);
}

export const authField: Field = {
  check: isObject,
  expected: `{ ${Object.keys(authFields).join(", ")} }`,
  fields: authFields,
};

/** A request with an origin that is written in another way, e.g. with a slash, would not match. */
const isOrigin = (value: unknown) => isText(value) && isPublicUrl(value) && URL.parse(value)?.origin === value;

export const publicUrlField: Field = {
  check: (value) => isText(value) && isPublicUrl(value),
  expected: "the http or https URL that clients know, without a query, e.g. https://example.com/mcp",
};

export const originsField: Field = {
  check: (value) => Array.isArray(value) && value.every(isOrigin),
  expected: "a list of origins such as https://app.example.com, without a path and without *",
};
