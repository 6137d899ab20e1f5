import { existsSync } from "node:fs";
import { closest } from "../../command/suggest.ts";
import { Exit, type ExitCode, messageOf, UsageError } from "../../errors.ts";
import { readSettings } from "../../settings/settings.ts";
import { fileOf, isInstalled, type SetupHost } from "../../setup/host.ts";
import { hosts } from "../../setup/hosts/index.ts";
import { toProjectWrap, toUserWrap } from "../../setup/launch.ts";
import { wrapWordsOf } from "../../setup/ownership.ts";
import { SetupRecord } from "../../setup/setup-record.ts";
import { planUnwrap } from "../../setup/wrap/plan-unwrap.ts";
import { planWrap } from "../../setup/wrap/plan-wrap.ts";
import { applyWrap, type OpenedFile, openFile, type WrapChange, type WrapTarget } from "../../setup/wrap/wrap-file.ts";
import { WrapRecord } from "../../setup/wrap/wrap-record.ts";
import { clean, cleanLines } from "../terminal.ts";
import { type TypedVerb, toProjectFlags } from "../verb.ts";
import { hostWithId, startFacts, thisMachine } from "./set-up.ts";
import { printDiff } from "./show-setup.ts";
import { showEntries, tellEnd, tellWrap, type Wrapping } from "./show-wrap.ts";

/** `meanwhile setup --wrap` and `--unwrap`: puts servers that hosts have behind this one, and back. */
export async function wrapEntries(typed: TypedVerb): Promise<ExitCode> {
  const { options, operands } = typed;
  checkFlags(options);
  const wrapping = readWrapping(typed);
  const named = [...new Set(operands.flatMap((word) => hostWithId(word) ?? []))];
  const names = operands.filter((word) => hostWithId(word) === undefined);
  const files = openFiles(wrapping, targetsOf(wrapping, named));
  if (operands.length === 0 && options.all !== true && options.dryRun !== true)
    return showEntries(wrapping, files.opened);
  checkNames(names, files.opened);
  const changes = files.opened.map((opened) => plan(wrapping, opened, names));
  const isDone = await carryOut(wrapping, changes, options.dryRun === true);
  return isDone && files.isWhole ? Exit.Ok : Exit.CommandFailed;
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
  return {
    kind: options.wrap === true ? "wrapped" : "unwrapped",
    machine: thisMachine(context),
    scope,
    terminal,
    records: { setup: new SetupRecord(settings.home), wrap: new WrapRecord(settings.home) },
    means: {
      toLaunch: (words) => (scope === "user" ? toUserWrap(facts, words) : toProjectWrap(words)),
      isThere: existsSync,
    },
  };
}

/** Those that were named, or all that are installed; a file that two hosts share is looked at once. */
function targetsOf({ scope, machine }: Wrapping, named: readonly SetupHost[]): WrapTarget[] {
  const chosen = named.length > 0 ? named : hosts.filter((host) => scope === "project" || isInstalled(host, machine));
  const targets = chosen.flatMap((host): WrapTarget[] => {
    const file = fileOf(host, scope, machine);
    if (file !== undefined) return [{ host, scope, file }];
    if (named.length === 0) return [];
    throw new UsageError(`${host.title} has no file for a project; leave --project out.`);
  });
  return targets.filter(({ file }, index) => targets.findIndex((other) => other.file === file) === index);
}

/** A file that cannot be understood is told, and keeps no other from it. */
function openFiles(
  { machine, terminal }: Wrapping,
  targets: readonly WrapTarget[],
): { opened: OpenedFile[]; isWhole: boolean } {
  const opened: OpenedFile[] = [];
  for (const target of targets) {
    try {
      opened.push(openFile(target, machine));
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
function plan({ kind, records, means }: Wrapping, opened: OpenedFile, names: readonly string[]): WrapChange {
  const isChosen = (name: string) => names.length === 0 || names.includes(name);
  const chosen = opened.entries.filter(({ name }) => isChosen(name));
  if (kind === "wrapped") return planWrap(opened, chosen, means);
  const wrapped = chosen.filter(({ entry }) => names.length > 0 || wrapWordsOf(entry) !== undefined);
  return planUnwrap(opened, wrapped, records.wrap);
}

async function carryOut(wrapping: Wrapping, changes: readonly WrapChange[], isDryRun: boolean): Promise<boolean> {
  const { terminal, records } = wrapping;
  const done: WrapChange[] = [];
  let failed = 0;
  for (const change of changes) {
    try {
      const isChanged = change.done.length > 0;
      if (isDryRun && isChanged) await printDiff(terminal, change.before, change.bytes);
      const { backup } = isDryRun ? { backup: undefined } : applyWrap(change, records);
      tellWrap(wrapping, change, { backup, isDryRun });
      if (isChanged) done.push(change);
      if (change.left.some(({ isFailure }) => isFailure)) failed++;
    } catch (error) {
      failed++;
      terminal.say(`${terminal.colors.red("✗")} ${change.target.host.title}: ${cleanLines(messageOf(error))}\n`);
    }
  }
  tellEnd(wrapping, done, { isDryRun, isTold: failed > 0 || changes.some(({ left }) => left.length > 0) });
  return failed === 0;
}
