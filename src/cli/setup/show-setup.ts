import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { executable } from "../../project/project.ts";
import { type ConfigChange, findEntry, type SetupTarget } from "../../setup/change.ts";
import type { ConfigFile } from "../../setup/config-file.ts";
import { fileOf, isInstalled, type Launch, type SetupHost, type SetupScope } from "../../setup/host.ts";
import { hosts } from "../../setup/hosts/index.ts";
import { installationOf } from "../../setup/launcher/installation.ts";
import type { Machine } from "../../setup/machine.ts";
import type { SetupRecord } from "../../setup/setup-record.ts";
import { type RepairMeans, readLauncherAt } from "../../setup/wrap/repair-entry.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";

/** What is to be set up, and where. */
export interface Setup {
  readonly machine: Machine;
  readonly scope: SetupScope;
  readonly name: string;
  readonly launch: Launch;
  readonly record: SetupRecord;
  /** What repairs entries of ours; undefined for a project's files. */
  readonly repair: RepairMeans | undefined;
  /** Writes the launcher that entries in a user's own files name. */
  prepareLauncher(): void;
  readonly terminal: Terminal;
}

/** The entry of a host, and the file it stands in. */
export function toTarget({ scope, machine, name }: Setup, host: SetupHost): SetupTarget {
  const file = fileOf(host, scope, machine);
  if (file === undefined) throw new UsageError(`${host.title} has no file for a project; leave --project out.`);
  return { host, scope, file, name };
}

/** What a host has of it. */
export function stateOf({ launch, record }: Setup, target: SetupTarget): "no" | "yes" | "other" | "foreign" | "broken" {
  try {
    const state = findEntry(target, record, target.host.toEntry(launch));
    return state === "none" ? "no" : state === "same" ? "yes" : state;
  } catch {
    return "broken";
  }
}

/** Lists the hosts, the entries that would not start, and what to do next. */
export function showHosts(setup: Setup, brokenEntries: string): ExitCode {
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
  terminal.say(brokenEntries + nextSteps(setup, rows));
  return Exit.Ok;
}

export const plain = { bold: String, dim: String, green: String, yellow: String, red: String, cyan: String };
/** Data is painted only where a person looks at it. */
export const isPainted = (terminal: Terminal) => terminal.isDataShown;

function nextSteps({ terminal, scope, name }: Setup, rows: readonly (readonly string[])[]): string {
  const { cyan } = terminal.colors;
  const open = rows
    .filter(([, found, entry]) => found === "yes" && (entry === "no" || entry === "other"))
    .map(([id]) => id);
  const example = open[0] ?? rows[0]?.[0] ?? "";
  const flag = scope === "project" ? " --project" : "";
  const steps = [
    [`${thisProgram.name} setup ${example}${flag}`, `adds ${name} to it`],
    ...(open.length > 1
      ? [[`${thisProgram.name} setup --all${flag}`, `to the ${open.length} that were found and need it`]]
      : []),
    [`${thisProgram.name} setup --dry-run${flag}`, "shows what would change"],
    ...(rows.some(([, , entry]) => entry === "yes" || entry === "other")
      ? [[`${thisProgram.name} setup --remove --all${flag}`, "takes it away again"]]
      : []),
  ];
  const width = Math.max(...steps.map(([words]) => words?.length ?? 0)) + 2;
  return `\n${steps.map(([words = "", what]) => `  ${cyan(words.padEnd(width))}${what}\n`).join("")}`;
}

/** What the hosts run from now on, and what has to be known of it. */
export function tellLaunch(setup: Setup): void {
  setup.terminal.say(`${setup.terminal.colors.dim("It runs")}  ${toLine(setup.launch)}\n${remarks(setup)}`);
}

/** What a host runs, with the variables it sets. */
function toLine({ command, args, env }: Launch): string {
  return [
    ...Object.entries(env).map(([name, value]) => `${name}=${quoted(value)}`),
    ...[command, ...args].map(quoted),
  ].join(" ");
}

/** A word as a shell needs it, so that what is printed can be typed. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./\\-]+$/.test(word) ? word : `'${clean(word).replaceAll("'", "'\\''")}'`;
}

function remarks(setup: Setup): string {
  const { scope, machine, launch } = setup;
  if (scope === "user") return remarkOnCopy(setup);
  const manifest = path.join(machine.project, "package.json");
  const isDependency = existsSync(manifest) && readFileSync(manifest, "utf8").includes(`"${thisProgram.packageName}"`);
  const values =
    Object.keys(launch.env).length === 0
      ? ""
      : "         The values are in a file of the project: whoever gets that reads them.\n";
  return `${values}${isDependency ? "" : `         Whoever uses the project needs it there: npm install --save-dev ${thisProgram.packageName}\n`}`;
}

/** Says what becomes of the copy that entries start, where that may be removed any day. */
function remarkOnCopy({ repair }: Setup): string {
  const { launcher, isWindows = false } = repair?.facts ?? {};
  const recorded = launcher === undefined ? undefined : readLauncherAt(isWindows ? `${launcher}.cmd` : launcher);
  const kind = installationOf(recorded?.package ?? executable());
  if (kind !== "npx" && kind !== "project") return "";
  const fate =
    kind === "npx" ? "npx fetches it again when its cache is cleared" : "This copy is removed with its project";
  return `         ${fate}; after npm install -g ${thisProgram.packageName} run setup again.\n`;
}

/** What would change, as a diff. */
export async function showDiff(setup: Setup, { kind, before, bytes, target }: ConfigChange): Promise<void> {
  const { terminal } = setup;
  if (kind === "unchanged" || kind === "absent") {
    terminal.say(`${target.host.title}: nothing to change in ${shorten(target.file, setup)}\n`);
    return;
  }
  await printDiff(terminal, before, bytes);
}

/** A file's change as a diff, painted where a person looks at it. */
export async function printDiff(terminal: Terminal, before: ConfigFile, bytes: Buffer | undefined): Promise<void> {
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

/** What was changed. */
export function tellChange(
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
export function shorten(file: string, { machine, scope }: Pick<Setup, "machine" | "scope">): string {
  const inside = (folder: string) => {
    const rest = path.relative(folder, file);
    return rest.startsWith("..") || path.isAbsolute(rest) ? undefined : rest;
  };
  const fromHere = scope === "project" ? inside(machine.project) : undefined;
  const fromHome = inside(machine.home);
  return clean(fromHere ?? (fromHome === undefined ? file : path.join("~", fromHome)));
}
