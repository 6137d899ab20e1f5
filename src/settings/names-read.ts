import { createHmac } from "node:crypto";
import path from "node:path";
import { environmentNames, type Found } from "../command/environment.ts";
import { type Home, isBundledFile, type ProcessEnvironment, packageFolder, readSalt } from "../paths.ts";
import { literalsOf, type Wrap } from "../project/wrap.ts";
import type { EnvironmentMarks } from "../task/task.ts";
import { isData } from "./load-config.ts";

/**
 * The variables that a project's own files read, as they are now: those of its commands, and its config's where that is
 * code.
 */
export function lookForNames(folders: readonly string[], configFile: string | undefined): Found {
  const own = folders.filter((folder) => !isBundledFile(path.join(folder, "any")));
  const ours = ["src", "dist"].map((folder) => path.join(packageFolder(), folder, path.sep));
  return environmentNames({
    folders: own,
    files: configFile === undefined || isData(configFile) ? [] : [configFile],
    skips: (file) => ours.some((folder) => file.startsWith(folder)),
  });
}

/**
 * Tells values apart without saying anything about them; the same value has the same mark in all processes of a home.
 */
export function markValues(home: Home, env: ProcessEnvironment, names: readonly string[]): EnvironmentMarks {
  const salt = readSalt(home);
  const markOf = (name: string, value: string) =>
    createHmac("sha256", salt).update(`${name}\0${value}`).digest("base64url").slice(0, 22);
  return Object.fromEntries(names.map((name) => [name, env[name] === undefined ? "" : markOf(name, env[name])]));
}

/** The same for values that stand in clear in what is wrapped: with another token it is another server. */
export function marksOfWrap(home: Home, wrap: Wrap | undefined): EnvironmentMarks {
  const literals = wrap === undefined ? {} : literalsOf(wrap);
  return markValues(home, literals, Object.keys(literals));
}
