import { realpathSync } from "node:fs";
import type { ParseError } from "jsonc-parser";
import { loadModule } from "../command/load.ts";
import { describePlace, placeOf } from "../command/place.ts";
import type { UserConfig } from "../config.ts";
import { messageOf, RuntimeError } from "../errors.ts";
import { type Home, readConfigText, refuseLongConfig } from "../paths.ts";
import type { ProjectConfig } from "../project/project.ts";
import { readText, storeConfig } from "../project/stored-project.ts";
import { requireOwn } from "../system/own-module.ts";
import { checkConfig } from "./check-config.ts";

/** Data is read by everybody; code is run by those who are asked to. */
export function isData(configFile: string): boolean {
  return configFile.endsWith(".json");
}

/** What was kept by another version may not be what this one takes. */
export function checkStored(said: unknown): UserConfig | undefined {
  try {
    return said === undefined ? undefined : checkConfig(said, "what was kept");
  } catch {
    return undefined;
  }
}

/** The part of a project's file that says which project it is. */
export async function projectConfigOf(home: Home, file: string): Promise<ProjectConfig> {
  const { commands, bundled, env, upstreams } = await loadConfig(home, file);
  return {
    ...(commands !== undefined && { commands }),
    ...(bundled !== undefined && { bundled }),
    ...(env !== undefined && { env }),
    ...(upstreams !== undefined && { upstreams }),
  };
}

/** Returns what a config file says, checked. A config that is code is run, and what it said is stored in the home. */
export async function loadConfig(home: Home, file: string): Promise<UserConfig> {
  if (isData(file)) return readJsonConfig(file);
  const { text, said } = await runConfig(file);
  storeConfig(home, file, { text, said });
  return said;
}

/** The same, and writes nothing: a test has no home. */
export async function loadConfigOnly(file: string): Promise<UserConfig> {
  return isData(file) ? readJsonConfig(file) : (await runConfig(file)).said;
}

async function runConfig(file: string): Promise<{ readonly text: string | undefined; readonly said: UserConfig }> {
  refuseLongConfig(file);
  const text = readText(file);
  let exported: unknown;
  try {
    exported = (await loadModule(file)).default;
  } catch (cause) {
    throw new RuntimeError(
      "CONFIG_INVALID",
      `Cannot load ${file}: ${messageOf(cause).split("\n")[0]}${lineIn(file, cause)}`,
      { cause },
    );
  }
  return { text, said: checkConfig(exported, file) };
}

/** The line that threw; where it is another file's, that one is named. */
function lineIn(file: string, cause: unknown): string {
  const place = placeOf(cause);
  if (place === undefined) return "";
  return place.file === realpathSync(file) ? ` (line ${place.line})` : ` (${describePlace(place)})`;
}

/** What a config file that is data says, held to the rules. */
export function readJsonConfig(file: string): UserConfig {
  let text = "";
  let parsed: unknown;
  try {
    text = readConfigText(file);
    parsed = JSON.parse(text);
  } catch (cause) {
    if (cause instanceof RuntimeError) throw cause;
    throw new RuntimeError(
      "CONFIG_INVALID",
      `Cannot read ${file}${cause instanceof SyntaxError ? describeJsonError(text, cause) : `: ${messageOf(cause)}`}`,
      {
        cause,
      },
    );
  }
  return checkConfig(parsed, file);
}

/** Node's own sentence names a place for some mistakes only, and quotes the file for others. */
function describeJsonError(text: string, { message }: SyntaxError): string {
  const why = message.replace(/(,? in JSON at position|, (\.\.\.)?").*$/s, "");
  const { parse } = requireOwn("jsonc-parser") as typeof import("jsonc-parser");
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true, allowEmptyContent: false });
  const before = text.slice(0, errors[0]?.offset ?? text.length).split("\n");
  return ` at line ${before.length}, column ${(before.at(-1) ?? "").length + 1}: ${why}.`;
}
