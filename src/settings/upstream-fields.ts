import type { UpstreamConfig, UpstreamOAuth } from "../config.ts";
import { isUpstreamName, maxUpstreamName } from "../project/upstream-name.ts";
import type { Field } from "./check-config.ts";

/** What a config may say of the servers behind this one. */

const isText = (value: unknown): value is string => typeof value === "string" && value !== "" && !value.includes("\0");
const text: Field = { check: isText, expected: "text" };
const anyText: Field = {
  check: (value) => typeof value === "string" && !/[\0\r\n]/.test(value),
  expected: "text in one line",
};
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const oneOf = (...known: readonly string[]): Field => ({
  check: (value) => known.includes(value as string),
  expected: `one of ${known.map((one) => JSON.stringify(one)).join(", ")}`,
});
const toolNames: Field = {
  check: (value) => Array.isArray(value) && value.every(isText),
  expected: "a list of tool names, in which * stands for any letters",
};

const oauthFields: Record<keyof UpstreamOAuth, Field> = {
  grant: oneOf("browser", "device", "client-credentials"),
  clientId: text,
  clientSecret: text,
  scopes: { check: (value) => Array.isArray(value) && value.every(isText), expected: "a list of scopes" },
};

const seconds: Field = {
  check: (value) => typeof value === "number" && value > 0 && value <= 604_800,
  expected: "seconds above 0, up to 604800",
};

const fields: Record<keyof UpstreamConfig, Field> = {
  command: text,
  args: {
    check: (value) => Array.isArray(value) && value.every((one) => typeof one === "string" && !one.includes("\0")),
    expected: "a list of texts",
  },
  cwd: text,
  env: { check: isObject, expected: "texts by the names of variables", each: { ...anyText, check: isLines } },
  url: { check: isUrl, expected: "an address that begins with http:// or https://, without a name and password in it" },
  headers: { check: isObject, expected: "texts by the names of headers", each: anyText },
  transport: oneOf("http", "sse"),
  oauth: { check: isObject, expected: `{ ${Object.keys(oauthFields).join(", ")} }`, fields: oauthFields },
  share: oneOf("session", "caller", "all"),
  allow: toolNames,
  deny: toolNames,
  rerun: toolNames,
  long: toolNames,
  startSeconds: seconds,
  idleSeconds: seconds,
  timeLimitSeconds: seconds,
  disabled: { check: (value) => typeof value === "boolean", expected: "true or false" },
};

/** A value of a variable may have lines, as a key does. */
function isLines(value: unknown): boolean {
  return typeof value === "string" && !value.includes("\0");
}

/** One that names variables is looked at when they are known. */
function isUrl(value: unknown): boolean {
  if (typeof value !== "string") return false;
  // A variable holds all of it: one look at it comes when it is opened.
  if (/^\$\{[^}]+\}$/.test(value)) return true;
  if (!/^https?:\/\/[^/\s]/i.test(value)) return false;
  if (value.includes("${")) return true;
  const url = URL.parse(value);
  return url !== null && url.username === "" && url.password === "";
}

const upstream: Field = { check: isOneKind, expected: describeKind, fields };

/** A command or an address, with what belongs to it. */
function isOneKind(value: unknown): boolean {
  return isObject(value) && problemOf(value) === undefined;
}

function describeKind(value: unknown): string {
  return isObject(value) ? (problemOf(value) ?? "") : "an object { command, … } or { url, … }";
}

function problemOf(value: UpstreamConfig): string | undefined {
  if ((value.command === undefined) === (value.url === undefined))
    return `an object with either \`command\` or \`url\`, and this has ${value.url === undefined ? "neither" : "both"}`;
  const strange = (
    value.url === undefined ? (["headers", "transport", "oauth"] as const) : (["args", "cwd", "env"] as const)
  ).find((name) => value[name] !== undefined);
  if (strange === undefined) return undefined;
  return value.url === undefined
    ? `without \`${strange}\`, which is for a \`url\``
    : `without \`${strange}\`, which is for a \`command\``;
}

/** Upstreams by name. */
export const upstreamsField: Field = {
  check: (value) => isObject(value) && Object.keys(value).every(isUpstreamName),
  expected: (value) => {
    if (!isObject(value)) return "upstreams by name: { github: { command, … } }";
    const wrong = Object.keys(value).find((name) => !isUpstreamName(name));
    return `upstreams by names of up to ${maxUpstreamName} letters, digits, - and _, not ${JSON.stringify(wrong)}`;
  },
  each: upstream,
};
