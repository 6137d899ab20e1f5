import { statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { AppCaller } from "../auth/app-caller.ts";
import { commandsOf } from "../command/code-source.ts";
import type { Command } from "../command/command.ts";
import type { CommandSource } from "../command/source.ts";
import { closest } from "../command/suggest.ts";
import type { AuthConfig, UserConfig } from "../config.ts";
import { byStore, isQueue } from "../queue/open-dispatcher.ts";
import { checkConfig } from "../settings/check-config.ts";
import { isAcrossMachines, isPostgresUrl, isStoreFile, memoryStore } from "../store/open.ts";
import { isConcurrency, isTtl, maxConcurrency, maxTtlMs } from "../task/limits.ts";

/** What an app looks at to know who calls. */
export interface AppRequest {
  readonly method: string;
  /** Whole, with the path that the client has asked for. */
  readonly url: string;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The request as it was handed over, with what the app's own middleware has put there. */
  readonly original: object;
}

/** The settings of a config file that mean something in a server without one. */
type SharedSetting =
  | "project"
  | "toolPrefix"
  | "prompts"
  | "followUpTools"
  | "deferral"
  | "hosts"
  | "errorsAsCompleted"
  | "graceSeconds"
  | "questionSeconds"
  | "limits"
  | "logLevel";

export interface SharedOptions extends Pick<UserConfig, SharedSetting> {
  /** Told to clients when they connect: what the tools are for, what to use first. */
  readonly instructions?: string;
  /**
   * Where tasks are kept: in the file of this path, which is made for this user alone and so survives a crash, or, by
   * default, in memory: ":memory:".
   */
  readonly store?: string;
  /**
   * Who hands out tasks that several processes share: BullMQ at this address, postgres:// or redis://, or "store" for the
   * store itself. Default: BullMQ in the database of a postgres:// store, where it is installed.
   */
  readonly queue?: string;
  /** How many tasks run here at a time, 1 to 1,000. Default: 16. */
  readonly concurrency?: number;
  /** How long the result of a task is kept whose client does not say, in milliseconds, up to 7 days. Default: 24 hours. */
  readonly taskTtlMs?: number;
  /**
   * Who calls over HTTP, by the app's own authentication; undefined for somebody who may not come in. Without it nobody
   * is asked, and all callers are strangers to each other.
   */
  readonly identify?: (request: AppRequest) => AppCaller | undefined | Promise<AppCaller | undefined>;
  /**
   * What single tools need from the callers that `identify` names, beside the scopes of the commands. Of several rules
   * that match a tool, the one with the most specific pattern counts.
   */
  readonly auth?: Pick<AuthConfig, "access">;
  /** The address that clients know, behind a proxy: its host may stand in Host and Origin. */
  readonly publicUrl?: string;
  /** Gets each line of the log, as JSON. Default: stderr. What is not said by `logLevel` is logged from "warn" on. */
  readonly log?: (line: string) => void;
}

export interface ServerOptions extends SharedOptions {
  /** How the server introduces itself. Without a `project`, tasks in a file belong to the servers of this name. */
  readonly name: string;
  readonly version: string;
  /** Commands with a name each, or folders of command files, which are followed while they change. */
  readonly commands: readonly Command[] | string | URL | readonly (string | URL)[];
  /**
   * `false`: this process answers its clients and runs nothing. Workers of the same `project` and `store` run the calls
   * and tasks: `meanwhile worker`, or another process of this app. Default: true.
   */
  readonly work?: boolean;
}

const sharedSettings: readonly SharedSetting[] = [
  "project",
  "toolPrefix",
  "prompts",
  "followUpTools",
  "deferral",
  "hosts",
  "errorsAsCompleted",
  "graceSeconds",
  "questionSeconds",
  "limits",
  "logLevel",
];

interface OwnField {
  readonly check: (value: unknown) => boolean;
  readonly expected: string;
}

const isText = (value: unknown) => typeof value === "string" && value.trim() !== "";
const isFunction = (value: unknown) => typeof value === "function";

const sharedFields: Record<Exclude<keyof SharedOptions, SharedSetting>, OwnField> = {
  instructions: { check: isText, expected: "text" },
  store: {
    check: (value) =>
      isText(value) && (isPostgresUrl(value as string) || isStoreFile(value as string) || value === memoryStore),
    expected: `"${memoryStore}", the path of a file, or postgres://user:password@host/database`,
  },
  queue: {
    check: (value) => typeof value === "string" && isQueue(value),
    expected: `"${byStore}", or an address that begins with postgres:// or redis://`,
  },
  concurrency: { check: isConcurrency, expected: `a whole number from 1 to ${maxConcurrency}` },
  taskTtlMs: {
    check: (value) => isTtl(value) && value <= maxTtlMs,
    expected: `a whole number of milliseconds from 1 to ${maxTtlMs}`,
  },
  identify: { check: isFunction, expected: "a function (request) => caller, or undefined for one who may not come in" },
  auth: {
    check: (value) =>
      typeof value === "object" && value !== null && Object.keys(value).every((name) => name === "access"),
    expected: '{ access: [{ tools: "report_*", scopes: ["reports"] }] }',
  },
  publicUrl: { check: isAddress, expected: "an address that begins with http:// or https://" },
  log: { check: isFunction, expected: "a function (line) => void" },
};

const ownFields: Record<Exclude<keyof ServerOptions, keyof SharedOptions | "work">, OwnField> = {
  name: { check: isText, expected: "text" },
  version: { check: isText, expected: "text" },
  commands: {
    check: (value) => Array.isArray(value) || isFolder(value),
    expected: 'a list of commands, or a folder of command files such as "./commands"',
  },
};

const workField: OwnField = { check: (value) => typeof value === "boolean", expected: "true or false" };

/** Options that were looked at, and what of them is there at once. */
export interface CheckedOptions extends SharedOptions {
  readonly name?: string;
  readonly version?: string;
  readonly work?: boolean;
  readonly folders: readonly string[];
  /** The commands that were handed over in code. */
  readonly source: CommandSource | undefined;
}

/** Throws one sentence that names the field. */
export function checkServerOptions(options: ServerOptions): CheckedOptions {
  checkOptions("createServer", options, ownFields, { work: workField });
  const { commands, ...others } = options;
  const { store = memoryStore, work = true } = others;
  if (!work && store === memoryStore)
    throw new TypeError(
      "createServer: `work: false` leaves all work to workers, and no worker can use a store in memory; set `store` to a file or to postgres://…",
    );
  const list = Array.isArray(commands) ? (commands as readonly unknown[]) : [commands];
  const areFolders = list.length > 0 && list.every(isFolder);
  const { name, toolPrefix = "" } = options;
  return {
    ...others,
    folders: areFolders ? list.map((folder) => toFolder(folder as string | URL)) : [],
    source: areFolders
      ? undefined
      : commandsOf(list as readonly Command[], { toolPrefix, name: `the code of ${name}` }),
  };
}

/** Throws one sentence for what is wrong with the options of a function that makes a server; `own` are needed. */
export function checkOptions(
  who: string,
  options: object,
  own: Readonly<Record<string, OwnField>>,
  optional: Readonly<Record<string, OwnField>> = {},
): void {
  const given = typeof options === "object" ? (options as Readonly<Record<string, unknown>> | null) : null;
  if (given === null) throw new TypeError(`${who} takes one object of options`);
  const fields: Readonly<Record<string, OwnField>> = { ...own, ...optional, ...sharedFields };
  const known = [...Object.keys(fields), ...sharedSettings];
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const guess = closest(unknown, known);
    throw new TypeError(
      `${who}: \`${unknown}\` is not an option; ${guess === undefined ? `there are ${known.join(", ")}` : `did you mean \`${guess}\`?`}`,
    );
  }
  for (const [name, { check, expected }] of Object.entries(fields)) {
    const value = given[name];
    if (value === undefined && !Object.hasOwn(own, name)) continue;
    if (!check(value))
      throw new TypeError(`${who}: \`${name}\` must be ${expected}${value === undefined ? ", and it is missing" : ""}`);
  }
  const shared = Object.fromEntries(sharedSettings.map((name) => [name, given[name]]));
  checkConfig({ ...shared, auth: given.auth }, who);
  if (given.project === undefined && isAcrossMachines(String(given.store ?? memoryStore)))
    throw new TypeError(
      `${who}: \`project\` is missing, and a PostgreSQL store needs it: servers and workers with the same \`project\` share their tasks; set it to a name such as "reports"`,
    );
}

function isFolder(value: unknown): value is string | URL {
  return isText(value) || value instanceof URL;
}

function toFolder(given: string | URL): string {
  if (given instanceof URL && given.protocol !== "file:")
    throw new TypeError(`createServer: \`commands\` names ${given.href}, which is no folder of this machine`);
  const folder = given instanceof URL ? fileURLToPath(given) : path.resolve(given);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new TypeError(`createServer: \`commands\` names ${folder}, and there is no such folder`);
  return folder;
}

function isAddress(value: unknown): boolean {
  return typeof value === "string" && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}
