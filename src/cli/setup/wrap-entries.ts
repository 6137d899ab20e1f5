import { existsSync } from "node:fs";
import path from "node:path";
import { closest } from "../../command/suggest.ts";
import { Exit, type ExitCode, messageOf, UsageError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { readSettings } from "../../settings/settings.ts";
import { fileOf, isInstalled, type SetupHost } from "../../setup/host.ts";
import { hosts } from "../../setup/hosts/index.ts";
import { toProjectWrap, toUserWrap } from "../../setup/launch.ts";
import type { Machine } from "../../setup/machine.ts";
import { wrapWordsOf } from "../../setup/ownership.ts";
import { findUserScopes, firstOfEach, type Scopes, toProjectTarget } from "../../setup/scopes.ts";
import { SetupRecord } from "../../setup/setup-record.ts";
import { readServer } from "../../setup/wrap/entry-server.ts";
import { planUnwrap } from "../../setup/wrap/plan-unwrap.ts";
import { planWrap, type WrapMeans } from "../../setup/wrap/plan-wrap.ts";
import {
  applyWrap,
  type FoundEntry,
  type OpenedFile,
  openFile,
  type WrapChange,
  type WrapTarget,
} from "../../setup/wrap/wrap-file.ts";
import { WrapRecord } from "../../setup/wrap/wrap-record.ts";
import { clean, cleanLines } from "../terminal.ts";
import { type TypedVerb, toProjectFlags } from "../verb.ts";
import { hostWithId, prepareLauncher, startFacts, thisMachine } from "./set-up.ts";
import { printDiff, quoted } from "./show-setup.ts";
import { showEntries, tellEnd, tellUnreached, tellWrap, type Wrapping } from "./show-wrap.ts";

/** `meanwhile setup --wrap` and `--unwrap`: puts servers that hosts have behind this one, and back. */
export async function wrapEntries(typed: TypedVerb): Promise<ExitCode> {
  const { options, operands } = typed;
  checkFlags(options);
  const wrapping = readWrapping(typed);
  const operated = readOperands(wrapping, operands, options.all === true);
  const scopes = findScopes(wrapping, operated);
  const files = openFiles(wrapping, scopes.targets);
  if (operands.length === 0 && options.all !== true && options.dryRun !== true)
    return showEntries(wrapping, files.opened, scopes);
  checkNames(operated.names, files.opened);
  const isNamed = (opened: OpenedFile, name: string) => isNamedThere(operated, files.opened, { opened, name });
  const changes = files.opened.map((opened) => plan(wrapping, opened, { names: operated.names, isNamed }));
  const tellRest = () => (options.all === true ? tellUnreached(wrapping, scopes) : undefined);
  const isDone = await carryOut(wrapping, changes, { isDryRun: options.dryRun === true, tellRest });
  return isDone && files.isWhole ? Exit.Ok : Exit.CommandFailed;
}

/** What was named: hosts, files of projects, and entries. */
interface Operands {
  readonly named: readonly SetupHost[];
  readonly files: readonly string[];
  readonly names: readonly string[];
  /** `--all`: everything else as well. */
  readonly isAll: boolean;
}

function readOperands({ machine }: Wrapping, operands: readonly string[], isAll: boolean): Operands {
  const others = operands.filter((word) => hostWithId(word) === undefined);
  const isFile = (word: string) => /[\\/]|^\.mcp\.json$/.test(word) && existsSync(path.resolve(machine.project, word));
  return {
    named: [...new Set(operands.flatMap((word) => hostWithId(word) ?? []))],
    files: others.filter(isFile).map((word) => path.resolve(machine.project, word)),
    names: others.filter((word) => !isFile(word)),
    isAll,
  };
}

/**
 * True where an entry was named so that a file is changed which git tracks: by the file, or by a name that no other file
 * has. Everybody who has the repository gets such a file.
 */
function isNamedThere(
  { files, names }: Operands,
  all: readonly OpenedFile[],
  { opened, name }: { opened: OpenedFile; name: string },
): boolean {
  if (files.includes(opened.target.file)) return true;
  const isElsewhere = all.some(
    ({ target, entries }) => target.isTracked !== true && entries.some((found) => found.name === name),
  );
  return names.includes(name) && !isElsewhere;
}

function checkFlags(options: TypedVerb["options"]): void {
  const verb = options.wrap === true ? "--wrap" : "--unwrap";
  const other =
    options.wrap === true && options.unwrap === true
      ? "--unwrap"
      : ["remove", "replace", "name", "env", "commands", "bundled"]
          .filter((name) => options[name] !== undefined)
          .map((name) => `--${name}`)[0];
  if (other !== undefined) throw new UsageError(`${verb} and ${other} do not go together; leave one of them out.`);
}

function readWrapping(typed: TypedVerb): Wrapping {
  const { options, terminal, context } = typed;
  const { settings } = readSettings({ cwd: context.cwd, env: context.env, flags: toProjectFlags(typed) });
  const scope = options.project === true ? "project" : "user";
  const facts = startFacts(settings, context);
  const records = { setup: new SetupRecord(settings.home), wrap: new WrapRecord(settings.home) };
  return {
    kind: options.wrap === true ? "wrapped" : "unwrapped",
    machine: thisMachine(context),
    scope,
    terminal,
    records,
    own: facts.env,
    facts,
    prepareLauncher: () => prepareLauncher(settings.home, context),
  };
}

/** A project's file that may be shared names nothing of this machine; one that git does not track is the user's own. */
const namesLauncher = ({ scope }: Wrapping, { isTracked }: WrapTarget) => scope === "user" && isTracked !== true;

function meansFor(wrapping: Wrapping, target: WrapTarget): WrapMeans {
  const { facts, records } = wrapping;
  return namesLauncher(wrapping, target)
    ? { toLaunch: (words) => toUserWrap(facts, words), isThere: existsSync, repair: { facts, record: records.wrap } }
    : { toLaunch: toProjectWrap, isThere: existsSync };
}

/** The files of those that were named, or of all that are installed; a file that two hosts share is opened once. */
function findScopes({ scope, machine }: Wrapping, { named, files, names, isAll }: Operands): Scopes {
  const none: Scopes = { targets: [], missingFolders: [], projectFiles: [], managedFiles: [] };
  const own = files.map((file) => toProjectTarget(hostOfFile(file, machine), file));
  if (own.length > 0 && named.length === 0 && names.length === 0 && !isAll) return { ...none, targets: own };
  const chosen = named.length > 0 ? named : hosts.filter((host) => scope === "project" || isInstalled(host, machine));
  if (scope === "user") {
    const found = findUserScopes(chosen, machine);
    return { ...found, targets: firstOfEach([...own, ...found.targets]) };
  }
  const targets = chosen.flatMap((host): WrapTarget[] => {
    const file = fileOf(host, scope, machine);
    if (file !== undefined) return [{ host, scope, file }];
    if (named.length === 0) return [];
    throw new UsageError(`${host.title} has no file for a project; leave --project out.`);
  });
  return { ...none, targets: firstOfEach([...own, ...targets]) };
}

/** The host whose project file has this name. */
function hostOfFile(file: string, machine: Machine): SetupHost {
  const isLike = (host: SetupHost) => {
    const usual = fileOf(host, "project", machine);
    return usual !== undefined && file.endsWith(usual.slice(machine.project.length));
  };
  const host = hosts.find(isLike);
  if (host !== undefined) return host;
  throw new UsageError(`${JSON.stringify(file)} is no file in which a host has the servers of a project.`);
}

/** A file that cannot be understood is told, and keeps no other from it. */
function openFiles({ terminal }: Wrapping, targets: readonly WrapTarget[]): { opened: OpenedFile[]; isWhole: boolean } {
  const opened: OpenedFile[] = [];
  for (const target of targets) {
    try {
      opened.push(openFile(target));
    } catch (error) {
      terminal.say(`${terminal.colors.red("✗")} ${target.host.title}: ${cleanLines(messageOf(error))}\n`);
    }
  }
  return { opened, isWhole: opened.length === targets.length };
}

function checkNames(names: readonly string[], files: readonly OpenedFile[]): void {
  const known = [...new Set(files.flatMap(({ entries }) => entries.map(({ name }) => name)))];
  const stranger = names.find((name) => !known.includes(name));
  if (stranger === undefined) return;
  const guess = closest(stranger, [...known, ...hosts.map(({ id }) => id)]);
  const there = known.length === 0 ? "there are none" : `there are ${known.map(clean).join(", ")}`;
  throw new UsageError(
    `${JSON.stringify(stranger)} is neither a host nor an entry of one; ${guess === undefined ? there : `did you mean ${clean(guess)}?`}`,
  );
}

/** What was named is told of in any case; of the rest, only what there is something to do about. */
function plan(
  wrapping: Wrapping,
  opened: OpenedFile,
  { names, isNamed }: { names: readonly string[]; isNamed(opened: OpenedFile, name: string): boolean },
): WrapChange {
  const { kind, records, own } = wrapping;
  const isChosen = (name: string) => names.length === 0 || names.includes(name);
  const chosen = opened.entries.filter(({ name }) => isChosen(name));
  const mayChange = ({ name }: FoundEntry) => opened.target.isTracked !== true || isNamed(opened, name);
  const [mine, shared] = [chosen.filter(mayChange), chosen.filter((found) => !mayChange(found))];
  const means = meansFor(wrapping, opened.target);
  const isWrapped = ({ entry }: FoundEntry) => wrapWordsOf(entry) !== undefined;
  const change =
    kind === "wrapped"
      ? planWrap(opened, mine, means)
      : planUnwrap(
          opened,
          mine.filter((found) => names.length > 0 || isWrapped(found)),
          { record: records.wrap, own },
        );
  const left = shared.filter((found) =>
    kind === "unwrapped" ? isWrapped(found) : readServer(found.entry, means.isThere).kind !== "none",
  );
  return left.length === 0 ? change : { ...change, left: [...change.left, toShared(wrapping, opened, left)] };
}

/** Why the entries of a file that git tracks stay, and how they are changed. */
function toShared({ kind }: Wrapping, { target }: OpenedFile, left: readonly FoundEntry[]): WrapChange["left"][number] {
  const verb = kind === "wrapped" ? "--wrap" : "--unwrap";
  const words = `${thisProgram.name} setup ${verb} ${quoted(target.file)}`;
  return {
    name: left.map(({ name }) => name).join(", "),
    why: `git tracks ${target.file}, so everybody who has the repository gets it; to change it, run: ${words}`,
    isFailure: false,
  };
}

async function carryOut(
  wrapping: Wrapping,
  changes: readonly WrapChange[],
  { isDryRun, tellRest }: { isDryRun: boolean; tellRest(): void },
): Promise<boolean> {
  const { terminal, records } = wrapping;
  const done: WrapChange[] = [];
  let failed = 0;
  for (const change of changes) {
    try {
      const isChanged = change.done.length > 0;
      if (isDryRun && isChanged) await printDiff(terminal, change.before, change.bytes);
      if (isChanged && !isDryRun && wrapping.kind === "wrapped" && namesLauncher(wrapping, change.target))
        wrapping.prepareLauncher();
      const { backup } = isDryRun ? { backup: undefined } : applyWrap(change, records);
      tellWrap(wrapping, change, { backup, isDryRun });
      if (isChanged) done.push(change);
      if (change.left.some(({ isFailure }) => isFailure)) failed++;
    } catch (error) {
      failed++;
      terminal.say(`${terminal.colors.red("✗")} ${change.target.host.title}: ${cleanLines(messageOf(error))}\n`);
    }
  }
  tellRest();
  tellEnd(wrapping, done, { isDryRun, isTold: failed > 0 || changes.some(({ left }) => left.length > 0) });
  return failed === 0;
}
