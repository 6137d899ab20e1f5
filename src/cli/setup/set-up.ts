import { existsSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import { isVariableName } from "../../command/environment.ts";
import { closest } from "../../command/suggest.ts";
import { Exit, type ExitCode, messageOf, UsageError } from "../../errors.ts";
import { type Home, userFolder } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { executable, isPackFolder, type ProjectFlags } from "../../project/project.ts";
import { readSettings, type Settings } from "../../settings/settings.ts";
import { applyChange, planAdd, planRemove, type SetupTarget } from "../../setup/change.ts";
import { fileOf, isInstalled, type Launch, type SetupHost } from "../../setup/host.ts";
import { hosts } from "../../setup/hosts/index.ts";
import { checkName, type StartFacts, toName, toProjectLaunch, toUserLaunch } from "../../setup/launch.ts";
import { hasLauncherParts, writeLauncher } from "../../setup/launcher/launcher-file.ts";
import type { Machine } from "../../setup/machine.ts";
import { findUserScopes } from "../../setup/scopes.ts";
import { SetupRecord } from "../../setup/setup-record.ts";
import { planRepair } from "../../setup/wrap/repair-entry.ts";
import { applyWrap, type FoundEntry, openFile } from "../../setup/wrap/wrap-file.ts";
import { WrapRecord } from "../../setup/wrap/wrap-record.ts";
import { withoutPassword } from "../../system/child-environment.ts";
import type { ProcessContext } from "../process-context.ts";
import { clean, cleanLines } from "../terminal.ts";
import { type TypedVerb, toProjectFlags } from "../verb.ts";
import { listBrokenEntries } from "./broken-entries.ts";
import {
  printDiff,
  type Setup,
  shorten,
  showDiff,
  showHosts,
  stateOf,
  tellChange,
  tellLaunch,
  toTarget,
} from "./show-setup.ts";

/** `meanwhile setup`: adds this server to hosts or takes it away; without a host, lists them. */
export async function setUp(typed: TypedVerb): Promise<ExitCode> {
  const { options, operands } = typed;
  const setup = readSetup(typed);
  const isDryRun = options.dryRun === true;
  const isRemoval = options.remove === true;
  const isReplacing = options.replace === true;
  if (isReplacing && isRemoval) throw new UsageError("--replace and --remove do not go together; use one of them.");
  if (operands.length === 0 && options.all !== true && !(isDryRun && !isRemoval)) {
    if (isRemoval)
      throw new UsageError(`Say from which hosts to take it, or --all; ${thisProgram.name} setup lists them.`);
    return showHosts(setup, listBrokenEntries(setup));
  }
  const chosen = operands.length > 0 ? operands.map(hostNamed) : hostsWith(setup, isRemoval);
  if (chosen.length === 0) return nothingToDo(setup, isRemoval);
  const targets = [...new Set(chosen)].map((host) => toTarget(setup, host));
  return await changeAll(setup, targets, { isRemoval, isReplacing, isDryRun });
}

/** What the words, and the settings of the project, say. */
function readSetup(typed: TypedVerb): Setup {
  const { options, terminal, context } = typed;
  const { cwd, env } = context;
  const flags = toProjectFlags(typed);
  const { settings, notice } = readSettings({ cwd, env, flags });
  // What the hosts call it may be said there.
  if (notice !== undefined && options.name === undefined) terminal.say(`${terminal.colors.yellow("!")} ${notice}\n`);
  const variables = readVariables((options.env as string[] | undefined) ?? []);
  if (options.remove === true && options.env !== undefined)
    throw new UsageError("--env and --remove do not go together; the variables go with the entry.");
  const machine = thisMachine(context);
  const scope = options.project === true ? "project" : "user";
  const launch =
    scope === "user"
      ? userLaunch(settings, flags, context)
      : toProjectLaunch(machine.project, withWholePaths(flags, cwd));
  return {
    machine,
    scope,
    name: options.name === undefined ? toName(settings.name) : checkName(options.name as string),
    launch: { ...launch, env: { ...launch.env, ...variables } },
    record: new SetupRecord(settings.home),
    repair:
      scope === "user" ? { facts: startFacts(settings, context), record: new WrapRecord(settings.home) } : undefined,
    prepareLauncher: () => prepareLauncher(settings.home, context),
    terminal,
  };
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

export function thisMachine({ cwd, env, platform }: ProcessContext): Machine {
  const isFolder = (file: string) => statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;
  const list = (folder: string) => (isFolder(folder) ? readdirSync(folder) : []);
  return {
    platform,
    home: userFolder(env),
    project: cwd,
    env,
    isThere: existsSync,
    list,
  };
}

function withWholePaths({ commands, ...flags }: ProjectFlags, cwd: string): ProjectFlags {
  return commands === undefined ? flags : { ...flags, commands: commands.map((folder) => path.resolve(cwd, folder)) };
}

/**
 * Started in the project's folder, or in one that is none's, the server finds what there is; only what was typed is
 * said again.
 */
function userLaunch(settings: Settings, flags: ProjectFlags, context: ProcessContext): Launch {
  const { cwd } = context;
  const { configFile, commandFolders, home } = settings;
  const own =
    flags.commands === undefined
      ? commandFolders.filter((folder) => !isPackFolder(folder))
      : [path.resolve(cwd, "commands")];
  const isHere = (folder: string) => folder.startsWith(path.join(cwd, path.sep)) && existsSync(folder);
  const isProject = configFile !== undefined || own.some(isHere);
  return toUserLaunch({
    ...startFacts(settings, context),
    folder: isProject ? cwd : home.folder,
    flags: withWholePaths(flags, cwd),
  });
}

/** What starts this program on this machine. */
export function startFacts(
  { home }: Settings,
  { cwd, env: variables, nodeFile, platform }: ProcessContext,
): StartFacts {
  const env = Object.fromEntries(
    [thisProgram.variable("HOME"), thisProgram.variable("STORE")].flatMap((name) =>
      variables[name] ? [[name, toWhole(variables[name], cwd)]] : [],
    ),
  );
  const launcher = hasLauncherParts() ? home.launcher : undefined;
  return { node: nodeFile, executable: executable(), launcher, isWindows: platform === "win32", env };
}

/** Writes the launcher in the home, or what is there stays where that is as good. */
export function prepareLauncher(home: Home, { env, nodeFile, nodeVersion, script, platform }: ProcessContext): void {
  const node = { file: nodeFile, version: nodeVersion, script, isWindows: platform === "win32" };
  if (hasLauncherParts()) writeLauncher(home, env, node);
}

/** A path from anywhere; a URL without its password, which belongs in no host's file. */
function toWhole(value: string, cwd: string): string {
  return /^[a-z][\w+.-]+:\/\//i.test(value) ? withoutPassword(value) : path.resolve(cwd, value);
}

/** The host of this id. */
export function hostWithId(word: string): SetupHost | undefined {
  return hosts.find(({ id }) => id === word.toLowerCase());
}

function hostNamed(word: string): SetupHost {
  const host = hostWithId(word);
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

interface How {
  readonly isRemoval: boolean;
  readonly isReplacing: boolean;
  readonly isDryRun: boolean;
}

async function changeAll(setup: Setup, targets: readonly SetupTarget[], how: How): Promise<ExitCode> {
  const { terminal, launch } = setup;
  const { red } = terminal.colors;
  let failed = 0;
  for (const target of targets) {
    try {
      const entry = target.host.toEntry(launch);
      const { isReplacing } = how;
      const plan = () =>
        how.isRemoval ? planRemove(target, setup.record, entry) : planAdd(target, setup.record, { entry, isReplacing });
      // What is refused is refused before anything is changed.
      plan();
      if (!how.isRemoval) await repairOthers(setup, target, how.isDryRun);
      const change = plan();
      const isFound = isInstalled(target.host, setup.machine);
      if (!how.isRemoval && !how.isDryRun && setup.scope === "user") setup.prepareLauncher();
      if (how.isDryRun) await showDiff(setup, change);
      else tellChange(setup, change, { isFound, backup: applyChange(change, setup.record).backup });
    } catch (error) {
      failed++;
      terminal.say(`${red("✗")} ${target.host.title}: ${cleanLines(messageOf(error))}\n`);
    }
  }
  if (!how.isRemoval && failed < targets.length) tellLaunch(setup);
  return failed === 0 ? Exit.Ok : Exit.CommandFailed;
}

/** Repairs the other entries of ours in the files of a host, before the one of this name is written. */
async function repairOthers(setup: Setup, target: SetupTarget, isDryRun: boolean): Promise<void> {
  const { repair, record, machine, terminal } = setup;
  if (repair === undefined) return;
  const { targets } = findUserScopes([target.host], machine);
  for (const one of targets.filter(({ isTracked }) => isTracked !== true)) {
    const opened = openFile(one);
    const isOther = ({ name, folder }: FoundEntry) =>
      one.file !== target.file || folder !== undefined || name !== target.name;
    const change = planRepair({ ...opened, entries: opened.entries.filter(isOther) }, repair);
    if (change.done.length === 0) continue;
    if (isDryRun) {
      await printDiff(terminal, change.before, change.bytes);
      continue;
    }
    setup.prepareLauncher();
    applyWrap(change, { setup: record, wrap: repair.record });
    const names = change.done.map(({ name }) => clean(name)).join(", ");
    const { green } = terminal.colors;
    terminal.say(`${green("✓")} ${target.host.title}: repaired ${names} in ${shorten(one.file, setup)}\n`);
  }
}
