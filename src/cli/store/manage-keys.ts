import { createApiKey } from "../../auth/api-key.ts";
import type { KeyStore, StoredKey } from "../../auth/key-store.ts";
import { builtInScopes, hasRight } from "../../auth/rights.ts";
import { systemClock, toMinute, toTimestamp } from "../../clock.ts";
import { type Caller, keyCaller } from "../../command/caller.ts";
import { CommandError, Exit, type ExitCode } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { openNodeStore } from "../../runtime/open-node-store.ts";
import { placeOf } from "../../runtime/open-tasks.ts";
import { readSettings, type Settings } from "../../settings/settings.ts";
import { keysTable } from "../screens/keys-table.ts";
import { widthFor } from "../screens/layout.ts";
import { clean } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { readExpiry, readName, readOverlap, readPatterns, readScopes } from "./key-options.ts";

export const subverbs = { list, add, rotate, revoke };

/** `meanwhile keys list` */
async function list(typed: TypedVerb): Promise<ExitCode> {
  const { terminal, options, flags, context } = typed;
  const { settings, notice } = readSettings({ cwd: context.cwd, env: context.env, flags });
  if (notice !== undefined) terminal.say(`${terminal.colors.yellow("!")} ${notice}\n`);
  const { now, keys } = await withKeys(settings, (store) => store.list(settings.project));
  if (options.json === true)
    printJson(
      typed,
      keys.map((key) => toJson(key, now)),
    );
  else if (keys.length === 0) showNone(typed, settings, notice === undefined);
  else terminal.print(keysTable(keys, now, widthFor(terminal)));
  return Exit.Ok;
}

/** Where another project may be meant, the cure is in a second line. */
function showNone({ terminal }: TypedVerb, settings: Settings, isCertain: boolean): void {
  terminal.print(`No API keys for ${clean(placeOf(settings))}; ${thisProgram.name} keys add <name> adds one.\n`);
  if (!isCertain || thisProgram.authors !== undefined) return;
  terminal.say(
    `  Each set of --commands, --bundled and config file is a project of its own. Give keys the options of the server: ${thisProgram.name} --bundled keys list\n`,
  );
}

/** `meanwhile keys add` */
async function add(typed: TypedVerb): Promise<ExitCode> {
  const { terminal, options, operands } = typed;
  const name = readName(operands[0] ?? "");
  const [scopes, commands] = [readScopes(options.scopes), readPatterns(options.commands)];
  const expiresInMs = readExpiry(options.expires);
  const settings = loadedSettingsOf(typed);
  const { project } = settings;
  const { id, key, hash } = createApiKey();
  const stored = await withKeys(settings, async (keys) => {
    const fresh = {
      ...{ id, project, name, hash, scopes, commands },
      ...(expiresInMs !== undefined && { expiresInMs }),
    };
    if (!(await keys.add(fresh)))
      throw new CommandError(
        `There is a key ${clean(name)} already; \`${thisProgram.name} keys rotate\` gives it a new secret, or choose another name.`,
      );
    return await find(keys, project, name);
  });
  const { green, yellow } = terminal.colors;
  const until = stored.key.expiresAt === undefined ? "never expires" : `expires ${toMinute(stored.key.expiresAt)}`;
  const tools = commands.length === 0 ? "all tools" : commands.join(", ");
  const what = `${scopes.join(", ")}; ${tools}; ${until}`;
  show(`${green("✓")} Added ${clean(name)} for ${clean(placeOf(settings))}: ${what}`, typed, {
    ...stored,
    secret: key,
  });
  const warning = warningOf(keyCaller(id, { scopes }), settings);
  if (warning !== undefined) terminal.say(`${yellow("!")} ${warning}\n`);
  return Exit.Ok;
}

/** Why the key can call nothing; undefined where it can, or is for metrics. */
function warningOf(caller: Caller, { daemon }: Settings): string | undefined {
  if (!hasRight(caller, "read") && !hasRight(caller, "metrics"))
    return `It may do nothing by these scopes alone; add ${builtInScopes.call} to call tools.`;
  if (thisProgram.authors !== undefined || !daemon.isPackAlone || hasRight(caller, "admin")) return undefined;
  return `This folder has no commands of its own, and the bundled ones need ${builtInScopes.admin}; add keys in your project's folder.`;
}

/** `meanwhile keys rotate` */
async function rotate(typed: TypedVerb): Promise<ExitCode> {
  const { terminal, options, operands } = typed;
  const overlapMs = readOverlap(options.overlap);
  const settings = loadedSettingsOf(typed);
  const { project } = settings;
  const name = operands[0] ?? "";
  const { key, now, secret, hadTwo } = await withKeys(settings, async (keys) => {
    const found = await find(keys, project, name);
    const { id, expiresAt, earlier } = found.key;
    if (expiresAt !== undefined && expiresAt <= found.now)
      throw new CommandError(
        `The key ${clean(name)} expired ${toMinute(expiresAt)}, and a new secret would expire with it; revoke it, and add another.`,
      );
    const { key: secret, hash } = createApiKey(id);
    const rotated = await keys.rotate(project, name, { hash, overlapMs });
    if (rotated === undefined) throw unknownKey(name);
    return { key: rotated, now: found.now, secret, hadTwo: earlier !== undefined && earlier.until > found.now };
  });
  const before =
    key.earlier === undefined
      ? `servers refuse ${hadTwo ? "both" : "the one"} before within 5 s`
      : `the one before is valid until ${toMinute(key.earlier.until)}${hadTwo ? ", and servers refuse the one before that within 5 s" : ""}`;
  show(`${terminal.colors.green("✓")} ${clean(name)} has a new secret; ${before}`, typed, { key, now, secret });
  return Exit.Ok;
}

/** `meanwhile keys revoke` */
async function revoke(typed: TypedVerb): Promise<ExitCode> {
  const { terminal, options, operands } = typed;
  const settings = loadedSettingsOf(typed);
  const { project } = settings;
  const name = operands[0] ?? "";
  const { key, now } = await withKeys(settings, async (keys) => {
    const found = await find(keys, project, name);
    if (!(await keys.revoke(project, name))) throw unknownKey(name);
    return found;
  });
  if (options.json === true) printJson(typed, toJson(key, now));
  else terminal.say(`${terminal.colors.green("✓")} Revoked ${clean(name)}; servers refuse it within 5 s\n`);
  return Exit.Ok;
}

interface ShownSecret {
  readonly key: StoredKey;
  readonly now: number;
  readonly secret: string;
}

/** The key alone goes to stdout, so that it can be piped. */
function show(line: string, typed: TypedVerb, { key, now, secret }: ShownSecret): void {
  const { terminal, options } = typed;
  if (options.json === true) {
    const { id, name, ...facts } = toJson(key, now);
    printJson(typed, { id, name, key: secret, ...facts });
  } else {
    terminal.say(`${line}\n`);
    terminal.print(`${secret}\n`);
    terminal.say("  It is shown this once. A client sends it as a header: Authorization: Bearer <key>\n");
  }
}

function printJson({ terminal }: TypedVerb, value: object): void {
  terminal.print(`${JSON.stringify(value, null, 2)}\n`);
}

/** The key as it is printed for programs; times are text, and what is absent is left out. */
function toJson({ id, name, scopes, commands, createdAt, expiresAt, usedAt, earlier }: StoredKey, now: number) {
  return {
    ...{ id, name, scopes, commands, createdAt: toTimestamp(createdAt) },
    ...(expiresAt !== undefined && { expiresAt: toTimestamp(expiresAt), isExpired: expiresAt <= now }),
    ...(usedAt !== undefined && { usedAt: toTimestamp(usedAt) }),
    ...(earlier !== undefined && earlier.until > now && { earlierSecretUntil: toTimestamp(earlier.until) }),
  };
}

async function find(keys: KeyStore, project: string, name: string): Promise<{ key: StoredKey; now: number }> {
  const { now, keys: all } = await keys.list(project);
  const key = all.find((one) => one.name === name);
  if (key === undefined) throw unknownKey(name);
  return { key, now };
}

function unknownKey(name: string): CommandError {
  return new CommandError(
    `This project has no key ${clean(name)}; \`${thisProgram.name} keys list\` shows the keys that it has.`,
  );
}

async function withKeys<T>(settings: Settings, act: (keys: KeyStore) => Promise<T>): Promise<T> {
  const store = await openNodeStore(settings, { clock: systemClock });
  try {
    return await act(store.shared.keys);
  } finally {
    await store.close();
  }
}

/** A config that is code, and was not loaded as it is, may name other folders of commands, which are another project. */
function loadedSettingsOf({ flags, context: { cwd, env } }: TypedVerb): Settings {
  const { settings, notice } = readSettings({ cwd, env, flags });
  if (notice !== undefined)
    throw new CommandError(`It is not certain which project's keys are meant: ${notice.replace(/\.$/, "")}.`);
  return settings;
}
