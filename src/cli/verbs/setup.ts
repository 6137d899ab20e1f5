import { existsSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { isVariableName } from "../../command/environment.ts";
import { closest } from "../../command/suggest.ts";
import { Exit, type ExitCode, messageOf, UsageError } from "../../errors.ts";
import { executable, isPackFolder } from "../../project/project.ts";
import { type Flags, readSettings, type Settings } from "../../settings/settings.ts";
import {
  applyChange,
  type ConfigChange,
  findEntry,
  planAdd,
  planRemove,
  type SetupTarget,
} from "../../setup/change.ts";
import { fileOf, isInstalled, type Launch, type SetupHost, type SetupScope } from "../../setup/host.ts";
import { hosts } from "../../setup/hosts/index.ts";
import { checkName, isFetchedByNpx, toName, toProjectLaunch, toUserLaunch } from "../../setup/launch.ts";
import type { Machine } from "../../setup/machine.ts";
import { SetupRecord } from "../../setup/setup-record.ts";
import { system } from "../../system/system.ts";
import type { VerbCall } from "../main.ts";
import { printHelp } from "../screens/layout.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";
import { collect, declareProject, parseVerb, toProjectFlags } from "../verb.ts";

const summary = "Add this server to MCP hosts, or take it away again; without a host, list them and change nothing";

export async function run(call: VerbCall): Promise<ExitCode> {
  const parsed = parseVerb("setup", summary, call.words, (program) => {
    program.argument("[hosts...]", hosts.map(({ id }) => id).join(", "));
    program.option("--all", "every host that is installed; with --remove, every one that has the entry");
    program.option("--project", "the project's file in this folder, to be shared, in place of your own");
    program.option("--remove", "take the entry away");
    program.option(
      "--replace",
      "put the entry in place of one that setup did not write; nothing of that one is kept but a backup",
    );
    program.option("--dry-run", "print what would change as a diff, and change nothing");
    program.option("--name <name>", "what the hosts call it (default: the name in the config, or meanwhile)");
    program.option(
      "--env <name=value>",
      "a variable for the commands, such as a key; may be given several times",
      collect,
    );
    declareProject(program);
  });
  if ("help" in parsed) {
    printHelp(parsed.help, call.terminal);
    return Exit.Ok;
  }
  const { options } = parsed;
  const flags = toProjectFlags(options, call.flags);
  const { settings, notice } = readSettings({ cwd: process.cwd(), env: process.env, flags });
  // What the hosts call it may be said there.
  if (notice !== undefined && options.name === undefined)
    call.terminal.say(`${call.terminal.colors.yellow("!")} ${notice}\n`);
  const variables = readVariables((options.env as string[] | undefined) ?? []);
  if (options.remove === true && options.env !== undefined)
    throw new UsageError("--env and --remove do not go together; the variables go with the entry.");
  const machine = thisMachine();
  const scope: SetupScope = options.project === true ? "project" : "user";
  const launch =
    scope === "user"
      ? userLaunch(settings, flags)
      : toProjectLaunch({ project: machine.project, folders: foldersOf(flags.commands ?? []), bundled: flags.bundled });
  const setup: Setup = {
    machine,
    scope,
    name: options.name === undefined ? toName(settings.name) : checkName(options.name as string),
    launch: { ...launch, env: { ...launch.env, ...variables } },
    record: new SetupRecord(settings.home),
    terminal: call.terminal,
  };
  const isDryRun = options.dryRun === true;
  if (options.replace === true && options.remove === true)
    throw new UsageError("--replace and --remove do not go together; use one of them.");
  if (parsed.operands.length === 0 && options.all !== true && !(isDryRun && options.remove !== true)) {
    if (options.remove === true)
      throw new UsageError("Say from which hosts to take it, or --all; meanwhile setup lists them.");
    return showHosts(setup);
  }
  const chosen =
    parsed.operands.length > 0 ? parsed.operands.map(hostNamed) : hostsWith(setup, options.remove === true);
  if (chosen.length === 0) return nothingToDo(setup, options.remove === true);
  const targets = [...new Set(chosen)].map((host) => toTarget(setup, host));
  return await changeAll(setup, targets, {
    isRemoval: options.remove === true,
    isReplacing: options.replace === true,
    isDryRun,
  });
}

interface Setup {
  readonly machine: Machine;
  readonly scope: SetupScope;
  readonly name: string;
  readonly launch: Launch;
  readonly record: SetupRecord;
  readonly terminal: Terminal;
}

/** What was typed as NAME=value. A value may be a secret, so no sentence repeats it. */
function readVariables(words: readonly string[]): Record<string, string> {
  const pairs = words.map((word): [string, string] => {
    const at = word.indexOf("=");
    const name = at === -1 ? word : word.slice(0, at);
    if (at === -1 && isVariableName(name))
      throw new UsageError(
        `--env ${name} has no value; write --env ${name}=value, or --env ${name}= for an empty one.`,
      );
    if (!isVariableName(name))
      throw new UsageError(
        `--env: ${JSON.stringify(clean(name))} is not the name of a variable; use letters, digits and _, the first no digit, as in --env ACME_KEY=value.`,
      );
    return [name, word.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

function thisMachine(): Machine {
  const list = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);
  return {
    platform: system.platform,
    home: homedir(),
    project: process.cwd(),
    env: process.env,
    isThere: existsSync,
    list,
  };
}

const foldersOf = (folders: readonly string[]) => folders.map((folder) => path.resolve(folder));

/**
 * Started in the project's folder, or in one that is none's, the server finds what there is; only what was typed is
 * said again.
 */
function userLaunch(settings: Settings, flags: Flags): Launch {
  const { configFile, commandFolders, home } = settings;
  const own =
    flags.commands === undefined
      ? commandFolders.filter((folder) => !isPackFolder(folder))
      : [path.resolve("commands")];
  const isHere = (folder: string) => folder.startsWith(path.join(process.cwd(), path.sep)) && existsSync(folder);
  const isProject = configFile !== undefined || own.some(isHere);
  const env = Object.fromEntries(
    ["MEANWHILE_HOME", "MEANWHILE_STORE"].flatMap((name) =>
      process.env[name] ? [[name, path.resolve(process.env[name])]] : [],
    ),
  );
  return toUserLaunch({
    node: process.execPath,
    executable,
    version: settings.version,
    isWindows: system.platform === "win32",
    folder: isProject ? process.cwd() : home.folder,
    folders: foldersOf(flags.commands ?? []),
    bundled: flags.bundled,
    env,
  });
}

function hostNamed(word: string): SetupHost {
  const host = hosts.find(({ id }) => id === word.toLowerCase());
  if (host !== undefined) return host;
  const ids = hosts.map(({ id }) => id);
  const meant = ids.filter((id) => id.startsWith(word.toLowerCase()));
  const guess = meant.length > 0 ? meant.join(" or ") : closest(word, ids);
  throw new UsageError(
    `${JSON.stringify(word)} is not a host I know${guess === undefined ? "" : `; did you mean ${guess}?`}\n  There are: ${ids.join(", ")}`,
  );
}

/** Those --all stands for; a project has the files it has, whatever is installed. */
function hostsWith(setup: Setup, isRemoval: boolean): SetupHost[] {
  const possible = hosts.filter((host) => fileOf(host, setup.scope, setup.machine) !== undefined);
  if (!isRemoval) return possible.filter((host) => isInstalled(host, setup.machine));
  return possible.filter((host) => stateOf(setup, toTarget(setup, host)) !== "no");
}

function nothingToDo({ terminal, name }: Setup, isRemoval: boolean): ExitCode {
  terminal.say(
    isRemoval
      ? `No host has ${name}.\n`
      : `No host was found on this machine; name one to write its file all the same.\n`,
  );
  return Exit.Ok;
}

function toTarget({ scope, machine, name }: Setup, host: SetupHost): SetupTarget {
  const file = fileOf(host, scope, machine);
  if (file === undefined) throw new UsageError(`${host.title} has no file for a project; leave --project out.`);
  return { host, scope, file, name };
}

function stateOf({ launch, record }: Setup, target: SetupTarget): "no" | "yes" | "other" | "foreign" | "broken" {
  try {
    const state = findEntry(target, record, target.host.toEntry(launch));
    return state === "none" ? "no" : state === "same" ? "yes" : state;
  } catch {
    return "broken";
  }
}

function showHosts(setup: Setup): ExitCode {
  const { machine, scope, terminal } = setup;
  const listed = hosts
    .filter((host) => fileOf(host, scope, machine) !== undefined)
    .map((host) => ({ host, isThere: isInstalled(host, machine) }));
  const rows = listed
    .toSorted((a, b) => Number(b.isThere) - Number(a.isThere))
    .map(({ host, isThere }) => {
      const target = toTarget(setup, host);
      return [host.id, isThere ? "yes" : "no", stateOf(setup, target), shorten(target.file, setup)];
    });
  const heads = ["Host", "Found", "Entry", "Config file"];
  const widths = heads.map((_, column) => Math.max(...[heads, ...rows].map((row) => row[column]?.length ?? 0)) + 2);
  const toLine = (row: readonly string[]) =>
    `${row.map((cell, column) => (column === heads.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join("")}\n`;
  const { bold, dim, green, yellow } = isPainted(terminal) ? terminal.colors : plain;
  const paint = (row: readonly string[]) =>
    row[2] === "yes"
      ? green
      : ["other", "foreign", "broken"].includes(row[2] ?? "")
        ? yellow
        : row[1] === "no"
          ? dim
          : String;
  terminal.print(bold(toLine(heads)) + rows.map((row) => paint(row)(toLine(row))).join(""));
  terminal.say(nextSteps(setup, rows));
  return Exit.Ok;
}

const plain = { bold: String, dim: String, green: String, yellow: String, red: String, cyan: String };
/** Data is painted only where a person looks at it. */
const isPainted = (terminal: Terminal) => terminal.isDataShown;

function nextSteps({ terminal, scope, name }: Setup, rows: readonly (readonly string[])[]): string {
  const { cyan } = terminal.colors;
  const open = rows
    .filter(([, found, entry]) => found === "yes" && (entry === "no" || entry === "other"))
    .map(([id]) => id);
  const example = open[0] ?? rows[0]?.[0] ?? "";
  const flag = scope === "project" ? " --project" : "";
  const steps = [
    [`meanwhile setup ${example}${flag}`, `adds ${name} to it`],
    ...(open.length > 1 ? [[`meanwhile setup --all${flag}`, `to the ${open.length} that were found and need it`]] : []),
    [`meanwhile setup --dry-run${flag}`, "shows what would change"],
    ...(rows.some(([, , entry]) => entry === "yes" || entry === "other")
      ? [[`meanwhile setup --remove --all${flag}`, "takes it away again"]]
      : []),
  ];
  const width = Math.max(...steps.map(([words]) => words?.length ?? 0)) + 2;
  return `\n${steps.map(([words = "", what]) => `  ${cyan(words.padEnd(width))}${what}\n`).join("")}`;
}

interface How {
  readonly isRemoval: boolean;
  readonly isReplacing: boolean;
  readonly isDryRun: boolean;
}

async function changeAll(setup: Setup, targets: readonly SetupTarget[], how: How): Promise<ExitCode> {
  const { terminal, launch } = setup;
  const { red, dim } = terminal.colors;
  let failed = 0;
  for (const target of targets) {
    try {
      const entry = target.host.toEntry(launch);
      const { isReplacing } = how;
      const change = how.isRemoval
        ? planRemove(target, setup.record, entry)
        : planAdd(target, setup.record, { entry, isReplacing });
      const isFound = isInstalled(target.host, setup.machine);
      if (how.isDryRun) await showDiff(setup, change);
      else report(setup, change, { isFound, backup: applyChange(change, setup.record).backup });
    } catch (error) {
      failed++;
      terminal.say(`${red("✗")} ${target.host.title}: ${cleanLines(messageOf(error))}\n`);
    }
  }
  if (!how.isRemoval && failed < targets.length)
    terminal.say(`${dim("It runs")}  ${toLine(launch)}\n${remarks(setup)}`);
  return failed === 0 ? Exit.Ok : Exit.CommandFailed;
}

/** What a host runs, with the variables it sets. */
function toLine({ command, args, env }: Launch): string {
  return [
    ...Object.entries(env).map(([name, value]) => `${name}=${quoted(value)}`),
    ...[command, ...args].map(quoted),
  ].join(" ");
}

/** As a shell would need it, so that it can be tried. */
function quoted(word: string): string {
  return /^[\w@%+=:,./\\-]+$/.test(word) ? word : `'${clean(word).replaceAll("'", "'\\''")}'`;
}

function remarks(setup: Setup): string {
  const { scope, machine, launch } = setup;
  if (scope === "user")
    return isFetchedByNpx(executable)
      ? "         npx fetches it at each start; after npm install -g meanwhile run setup again for a faster one.\n"
      : "";
  const manifest = path.join(machine.project, "package.json");
  const isDependency = existsSync(manifest) && readFileSync(manifest, "utf8").includes('"meanwhile"');
  const values =
    Object.keys(launch.env).length === 0
      ? ""
      : "         The values are in a file of the project: whoever gets that reads them.\n";
  return `${values}${isDependency ? "" : "         Whoever uses the project needs it there: npm install --save-dev meanwhile\n"}`;
}

async function showDiff(setup: Setup, { kind, before, bytes, target }: ConfigChange): Promise<void> {
  const { terminal } = setup;
  if (kind === "unchanged" || kind === "absent") {
    terminal.say(`${target.host.title}: nothing to change in ${shorten(target.file, setup)}\n`);
    return;
  }
  const nowhere = "/dev/null";
  const names = {
    before: before.bytes === undefined ? nowhere : before.file,
    after: bytes === undefined ? nowhere : before.file,
  };
  const { unifiedDiff } = await import("../../setup/diff.ts");
  const diff = unifiedDiff(before.bytes?.toString("utf8") ?? "", bytes?.toString("utf8") ?? "", names);
  terminal.print(
    isPainted(terminal) ? cleanLines(diff).replaceAll(/^.*$/gm, (line) => paintLine(line, terminal)) : diff,
  );
}

function paintLine(line: string, { colors }: Terminal): string {
  if (/^(---|\+\+\+) /.test(line)) return colors.bold(line);
  if (line.startsWith("@@")) return colors.cyan(line);
  return line.startsWith("+") ? colors.green(line) : line.startsWith("-") ? colors.red(line) : line;
}

function report(
  setup: Setup,
  { kind, target, bytes }: ConfigChange,
  { isFound, backup }: { isFound: boolean; backup: string | undefined },
): void {
  const { terminal } = setup;
  const { green, dim } = terminal.colors;
  const { host, name, scope } = target;
  const file = shorten(target.file, setup);
  const words = {
    added: `added ${name} to ${file}`,
    updated: `updated ${name} in ${file}`,
    unchanged: `${file} has ${name} already`,
    removed: bytes === undefined ? `removed ${file}, which held nothing else` : `removed ${name} from ${file}`,
    restored: `put ${name} in ${file} back as it was before setup`,
    absent: `there is no ${name} in ${file}`,
  }[kind];
  const isAdded = kind === "added" || kind === "updated";
  const lines = [
    `${kind === "absent" ? dim("·") : green("✓")} ${host.title}: ${words}`,
    ...(backup === undefined ? [] : [`  ${dim("Backup")}   ${shorten(backup, setup)}`]),
    ...(isAdded ? [`  ${dim("Next")}     ${(scope === "project" && host.projectNext) || host.next}`] : []),
    ...(isAdded && scope === "user" && !isFound
      ? [`  ${dim("Note")}     ${host.title} was not found on this machine.`]
      : []),
  ];
  terminal.say(`${lines.join("\n")}\n`);
}

/** A path as people write it: from here for a project's, else with ~ for their own folder. */
function shorten(file: string, { machine, scope }: Setup): string {
  const inside = (folder: string) => {
    const rest = path.relative(folder, file);
    return rest.startsWith("..") || path.isAbsolute(rest) ? undefined : rest;
  };
  const fromHere = scope === "project" ? inside(machine.project) : undefined;
  const fromHome = inside(machine.home);
  return clean(fromHere ?? (fromHome === undefined ? file : path.join("~", fromHome)));
}
