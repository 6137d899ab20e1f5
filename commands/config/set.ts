import { CommandError, changeableBy, checkConfig, defineCommand } from "meanwhile";
import { z } from "zod";
import { readUserFile, replaceUserFile, valueAt, withValue } from "./_user-file.ts";

/** Somebody else may be writing at the same time; then the file is read again. */
const maxTries = 5;

export default defineCommand({
  summary: "Change a setting in the user's config file",
  description:
    "A wrong value changes nothing. A running server takes it up when it starts again; environment, flags and a project's own config file win over it. " +
    "Through MCP it asks the person first; what decides which code runs, which files may be read and who may connect is changed in a terminal only.",
  input: z.object({
    key: z.string().describe("The setting, with dots for what is inside: toolPrefix, http.port, deferral.auto"),
    value: z.string().describe("JSON, or plain text: 8080, true, '[\"a\"]', wksm; null takes the setting away"),
  }),
  output: z.object({
    key: z.string(),
    old_value: z.unknown(),
    new_value: z.unknown(),
    config_path: z.string(),
  }),
  effects: "write",
  idempotent: true,
  confirm: ({ key, value }, { door }) =>
    door === "mcp" && changeableBy(key) === "tool" && canBeTaken(key, value) ? questionFor(key, value) : false,
  examples: ["http.port 8080", "toolPrefix wksm", "deferral.auto null"],
  summarize: ({ key, new_value }) =>
    new_value === null ? `${key} is back to its default` : `${key} is now ${JSON.stringify(new_value)}`,
  run({ key, value }, task) {
    if (task.origin.door !== "terminal" && changeableBy(key) === "person") throw new CommandError(refusalOf(key));
    const { keys, wanted } = parse(key, value);
    // Nobody was asked about a value that cannot be taken, so it must not be taken whatever else is in the file.
    if (task.origin.door !== "terminal") check(withValue({}, keys, wanted), readUserFile(task.home).file);
    for (let tries = 1; tries <= maxTries; tries++) {
      const before = readUserFile(task.home);
      const config = withValue(before.config, keys, wanted);
      check(config, before.file);
      if (!replaceUserFile(before, config)) continue;
      if (key === "bundled" && wanted === false) {
        task.log.warn(
          `The bundled commands are gone from the next start on, config set among them; to have them back, take "bundled" out of ${before.file}.`,
        );
      }
      return { key, old_value: valueAt(before.config, keys) ?? null, new_value: wanted, config_path: before.file };
    }
    throw new CommandError(
      "The config file is being changed by somebody else all the time; nothing was changed, try again.",
    );
  },
});

function parse(key: string, value: string): { readonly keys: readonly string[]; readonly wanted: unknown } {
  const keys = key.split(".");
  if (keys.includes(""))
    throw new CommandError(`\`key\` ${key === "" ? "is empty" : `${key} has an empty part`}; write e.g. http.port.`);
  if (value === "") throw new CommandError("`value` is empty; give JSON or a text, or null to take the setting away.");
  return { keys, wanted: parseValue(value) };
}

/** A person is not asked about what would be refused anyway. */
function canBeTaken(key: string, value: string): boolean {
  try {
    const { keys, wanted } = parse(key, value);
    checkConfig(withValue({}, keys, wanted), "config.json");
    return true;
  } catch {
    return false;
  }
}

/** So much of a value fits into a question. */
const maxShown = 300;

function questionFor(key: string, value: string): string {
  const shown = value.length > maxShown ? `${value.slice(0, maxShown)}… (${value.length} characters)` : value;
  return value === "null" ? `Take the setting ${key} away?` : `Change the setting ${key} to ${shown}?`;
}

/** A model must not widen its own rights, whatever it was told. */
function refusalOf(key: string): string {
  const [name] = key.split(".");
  // What a person is told to type is never more than a name, whatever the model wrote.
  const typed = /^[\w.-]{1,100}$/.test(key) ? key : name;
  return `\`key\` ${key.slice(0, maxShown)} is changed by a person, not through a tool: \`${name}\` is one of the settings that decide what may be done; run in a terminal: meanwhile config set ${typed} …`;
}

function check(config: object, file: string): void {
  try {
    checkConfig(config, file);
  } catch (cause) {
    throw new CommandError(`Nothing was changed. ${(cause as Error).message}`, { cause });
  }
}

/** `null` is how a value is taken away; no setting can be null. */
function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
