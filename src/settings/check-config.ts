import { homedir } from "node:os";
import path from "node:path";
import { isVariableName } from "../command/environment.ts";
import { closest } from "../command/suggest.ts";
import type { DeferralConfig, HttpConfig, LimitsConfig, PackConfig, UserConfig } from "../config.ts";
import { RuntimeError } from "../errors.ts";
import type { HostOverride } from "../host/profiles.ts";
import { type LogLevel, logLevels } from "../log.ts";
import { bundledDomains } from "../project/project.ts";
import { authField, originsField, publicUrlField } from "./auth-fields.ts";
import { upstreamsField } from "./upstream-fields.ts";

/** A path with the user's home in place of a ~ in front. */
export function expandHome(folder: string): string {
  return folder === "~" || folder.startsWith("~/") ? path.join(homedir(), folder.slice(1)) : folder;
}

const isText = (value: unknown) => typeof value === "string" && value !== "";
const isBoolean = (value: unknown) => typeof value === "boolean";
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const isPort = (value: unknown) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 65535;
/** A week: more than any wait, and less than a timer can hold. */
export const maxSeconds = 604_800;
export const isSeconds = (value: unknown) => typeof value === "number" && value >= 0 && value <= maxSeconds;

/** Whoever starts and stops processes kills those that take much longer. */
const maxGraceSeconds = 600;

const isRoot = (value: unknown) =>
  isText(value) && path.isAbsolute(expandHome(value as string)) && !(value as string).includes("\0");

function isBundledChoice(value: unknown): boolean {
  return isBoolean(value) || (Array.isArray(value) && unknownDomain(value) === undefined);
}

function unknownDomain(value: readonly unknown[]): unknown {
  const known = bundledDomains();
  return value.find((domain) => !known.includes(domain as string));
}

function describeBundled(value: unknown): string {
  const wrong = Array.isArray(value) ? `, not ${JSON.stringify(unknownDomain(value))}` : "";
  return `true, false, or a list of domains of the bundled commands (${bundledDomains().join(", ")})${wrong}`;
}

export interface Field {
  readonly check: (value: unknown) => boolean;
  readonly expected: string | ((value: unknown) => string);
  /**
   * A tool may change it, when the person agrees. Without this a person has to do it, in a terminal or in the file:
   * what is new is closed.
   */
  readonly isOpen?: true;
  /** The fields of an object. */
  readonly fields?: Readonly<Record<string, Field>>;
  /** What stands behind any name of an object. */
  readonly each?: Field;
}

const trueOrFalse: Field = { check: isBoolean, expected: "true or false" };
const seconds: Field = { check: isSeconds, expected: `seconds from 0 to ${maxSeconds}` };

const deferralFields: Record<keyof DeferralConfig, Field> = {
  auto: trueOrFalse,
  tools: { check: (value) => Array.isArray(value) && value.every(isText), expected: "a list of tool names" },
  requireClientTasks: trueOrFalse,
  unsolicited: trueOrFalse,
  patienceSeconds: seconds,
  longSeconds: seconds,
  keepInlineSeconds: seconds,
  learn: trueOrFalse,
};

const httpFields: Record<keyof HttpConfig, Field> = {
  port: { check: isPort, expected: "a whole number from 0 to 65535" },
  host: { check: isText, expected: "text" },
  allowAnonymous: trueOrFalse,
  publicUrl: publicUrlField,
  allowedOrigins: originsField,
};

const hostFields: Record<keyof HostOverride, Field> = {
  limitSeconds: { check: (value) => isSeconds(value) && value !== 0, expected: `seconds above 0, up to ${maxSeconds}` },
  isExtended: trueOrFalse,
};

const wholeFrom = (least: number, most: number): Field => ({
  check: (value) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most,
  expected: `a whole number from ${least} to ${most}`,
});

const packFields: Record<keyof PackConfig, Field> = {
  roots: {
    check: (value) => Array.isArray(value) && value.every(isRoot),
    expected: "a list of whole paths, or such that begin with ~/",
  },
  memoryMb: wholeFrom(128, 16_384),
  documentSeconds: {
    check: (value) => isSeconds(value) && value !== 0,
    expected: `seconds above 0, up to ${maxSeconds}`,
  },
  documentParts: wholeFrom(1, 1_000_000),
  unpackedMb: wholeFrom(1, 4_096),
  textMb: wholeFrom(1, 256),
};

const limitFields: Record<keyof LimitsConfig, Field> = {
  localTasks: wholeFrom(1, 1_000_000),
  signedInTasks: wholeFrom(1, 1_000_000),
  anonymousTasks: wholeFrom(1, 1_000_000),
  openQuestions: wholeFrom(1, 1_000_000),
  resultMb: wholeFrom(1, 16_384),
};

const fields: Record<keyof UserConfig, Field> = {
  name: { check: isText, expected: "text", isOpen: true },
  version: { check: isText, expected: "text" },
  project: {
    check: (value) => typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value),
    expected: "up to 64 letters, digits and . _ -",
  },
  instructions: { check: isText, expected: "text", isOpen: true },
  commands: { check: (value) => Array.isArray(value) && value.every(isText), expected: "a list of folders" },
  env: {
    check: (value) => Array.isArray(value) && value.every(isVariableName),
    expected:
      'a list of names of variables, each of letters, digits and _ and not beginning with a digit, such as "ACME_KEY"',
  },
  bundled: { check: isBundledChoice, expected: describeBundled },
  toolPrefix: {
    check: (value) => typeof value === "string" && /^([A-Za-z][A-Za-z0-9_]*)?$/.test(value),
    expected: "letters, digits and _, starting with a letter",
    isOpen: true,
  },
  http: { check: isObject, expected: `{ ${Object.keys(httpFields).join(", ")} }`, fields: httpFields },
  auth: authField,
  logLevel: {
    check: (value) => logLevels.includes(value as LogLevel),
    expected: `one of ${logLevels.join(", ")}`,
    isOpen: true,
  },
  logFiles: wholeFrom(1, 100),
  deferral: {
    check: isObject,
    expected: `{ ${Object.keys(deferralFields).join(", ")} }`,
    fields: deferralFields,
    isOpen: true,
  },
  hosts: {
    check: isObject,
    expected: "hosts by name",
    each: { check: isObject, expected: "{ limitSeconds, isExtended }", fields: hostFields },
    isOpen: true,
  },
  followUpTools: { ...trueOrFalse, isOpen: true },
  errorsAsCompleted: { ...trueOrFalse, isOpen: true },
  questionSeconds: {
    check: (value) => isSeconds(value) && value !== 0,
    expected: `seconds above 0, up to ${maxSeconds}`,
  },
  graceSeconds: {
    check: (value) => isSeconds(value) && (value as number) <= maxGraceSeconds,
    expected: `seconds from 0 to ${maxGraceSeconds}`,
  },
  prompts: { ...trueOrFalse, isOpen: true },
  limits: { check: isObject, expected: `{ ${Object.keys(limitFields).join(", ")} }`, fields: limitFields },
  diagnose: { check: isObject, expected: "{ allowPrivate }", fields: { allowPrivate: trueOrFalse } },
  pack: { check: isObject, expected: `{ ${Object.keys(packFields).join(", ")} }`, fields: packFields },
  mcp: { check: (value) => typeof value === "function", expected: "a function (server) => void" },
  upstreams: upstreamsField,
  upstreamPrefix: {
    check: (value) => value === "always" || value === "collision" || value === "never",
    expected: '"always", "collision" or "never"',
  },
};

/** Settings that were, and what to do about one that is still there. */
const gone: Readonly<Record<string, string>> = {
  requireToken:
    "is no setting any more, because HTTP asks for the token by itself; take it out (`http.allowAnonymous` lets callers in without one)",
};

/**
 * Who may change a setting: a tool, when the person agrees; only a person, in a terminal or in the file, where it
 * decides which code runs, which files may be read, who may connect or whom we may reach; nobody, because it is none.
 */
export function changeableBy(key: string): "tool" | "person" | "nobody" {
  const [name = ""] = key.split(".");
  if (!Object.hasOwn(fields, name)) return "nobody";
  return fields[name as keyof UserConfig].isOpen === true ? "tool" : "person";
}

/** Holds a config to the rules, whole; throws one sentence that names the file, the setting and what it must be. */
export function checkConfig(value: unknown, file: string): UserConfig {
  const refuse = (text: string) => new RuntimeError("CONFIG_INVALID", `${file}: ${text}`);
  if (!isObject(value)) throw refuse("must hold one object; write: export default defineConfig({ … })");
  checkFields(value, fields, "");
  return value;

  function checkFields(object: object, known: Readonly<Record<string, Field>>, at: string): void {
    for (const [name, entry] of Object.entries(object)) {
      const field = Object.hasOwn(known, name) ? known[name] : undefined;
      if (field !== undefined) {
        checkField(entry, field, `${at}${name}`);
        continue;
      }
      const farewell = at === "" && Object.hasOwn(gone, name) ? gone[name] : undefined;
      if (farewell !== undefined) throw refuse(`\`${name}\` ${farewell}`);
      const guess = closest(name, Object.keys(known));
      throw refuse(
        `\`${at}${name}\` is not a setting; ${guess === undefined ? `there are ${Object.keys(known).join(", ")}` : `did you mean \`${at}${guess}\`?`}`,
      );
    }
  }

  function checkField(entry: unknown, field: Field, at: string): void {
    if (entry === undefined) return;
    if (!field.check(entry))
      throw refuse(`\`${at}\` must be ${typeof field.expected === "string" ? field.expected : field.expected(entry)}`);
    if (field.fields !== undefined) checkFields(entry as object, field.fields, `${at}.`);
    if (field.each !== undefined)
      for (const [name, value] of Object.entries(entry as object)) checkField(value, field.each, `${at}.${name}`);
  }
}
