import { UsageError } from "../errors.ts";
import { isObject } from "../wire/json.ts";

/** What a program got wrong is said before anything is started or sent. Types alone do not keep JavaScript from it. */

export function checkTarget(target: unknown): void {
  const kinds = isObject(target)
    ? (["command", "url", "socket"] as const).filter((kind) => target[kind] !== undefined)
    : [];
  const [kind] = kinds;
  if (!isObject(target) || kind === undefined || kinds.length > 1)
    throw new UsageError("A target is { command, args }, { url } or { socket }.");
  const value = target[kind];
  if (!isText(value) || value.trim() === "")
    throw new UsageError(`A target's \`${kind}\` must be a text that is not empty.`);
  if (kind === "command") checkCommand(target);
  if (kind === "url") checkTexts(target.headers, "headers");
}

function checkCommand({ args, env, cwd }: Readonly<Record<string, unknown>>): void {
  if (args !== undefined && !(Array.isArray(args) && args.every(isText)))
    throw new UsageError("A target's `args` must be a list of texts.");
  if (cwd !== undefined && !isText(cwd))
    throw new UsageError("A target's `cwd` must be a text: the folder to start in.");
  checkTexts(env, "env");
}

function checkTexts(value: unknown, name: string): void {
  const isFine =
    value === undefined ||
    (isObject(value) && Object.values(value).every((text) => text === undefined || isText(text)));
  if (!isFine) throw new UsageError(`A target's \`${name}\` must be an object of texts.`);
}

/** What cannot be in a command line or a path is no text here. */
function isText(value: unknown): value is string {
  return typeof value === "string" && !value.includes("\0");
}

/** Milliseconds are numbers from 0 on; Infinity is no limit. */
export function checkLimits<T extends object>(options: T, names: readonly (keyof T & string)[]): void {
  if (!isObject(options)) throw new UsageError("Options must be an object.");
  for (const name of names) {
    const value: unknown = options[name];
    if (value !== undefined && !(typeof value === "number" && value >= 0))
      throw new UsageError(`\`${name}\` must be a number of milliseconds, 0 or more.`);
  }
}

export function checkCall(name: unknown, args: unknown): void {
  if (typeof name !== "string" || name === "") throw new UsageError("Say which tool to call: callTool(name, args).");
  if (args !== undefined && !isObject(args))
    throw new UsageError('A tool\'s arguments must be an object, e.g. { city: "Oslo" }.');
}
