import { existsSync } from "node:fs";
import { Exit, type ExitCode } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { cut, pad, widthOf } from "../../screen/width.ts";
import { isObject } from "../../setup/change.ts";
import type { Launch, SetupHost, SetupScope } from "../../setup/host.ts";
import type { StartFacts } from "../../setup/launch.ts";
import type { Machine } from "../../setup/machine.ts";
import { wrapWordsOf } from "../../setup/ownership.ts";
import type { Scopes } from "../../setup/scopes.ts";
import type { SetupRecord } from "../../setup/setup-record.ts";
import { readServer } from "../../setup/wrap/entry-server.ts";
import type { FoundEntry, OpenedFile, WrapChange, WrapTarget } from "../../setup/wrap/wrap-file.ts";
import type { WrapRecord } from "../../setup/wrap/wrap-record.ts";
import { rebuild } from "../../setup/wrap/wrapped-entry.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";
import { isPainted, plain, quoted, shorten } from "./show-setup.ts";

/** What is to be done to entries, and with what. */
export interface Wrapping {
  readonly kind: WrapChange["kind"];
  readonly machine: Machine;
  readonly scope: SetupScope;
  readonly terminal: Terminal;
  readonly records: { readonly setup: SetupRecord; readonly wrap: WrapRecord };
  /** What entries of this user start. */
  readonly facts: StartFacts;
  /** The home and the store of this setup, by their variables. */
  readonly own: Launch["env"];
  /** Writes the launcher that entries in a user's own files name. */
  prepareLauncher(): void;
}

/** Lists the entries that hosts have, and what to do next. Changes nothing. */
export function showEntries(wrapping: Wrapping, files: readonly OpenedFile[], scopes: Scopes): ExitCode {
  const { terminal } = wrapping;
  const rows = files.flatMap(({ target, entries }) =>
    entries.map((found) => {
      const [state, what] = stateOf(found.entry, target.host, existsSync);
      const shown = state === "no" && target.isTracked === true ? "shared" : state;
      return [target.host.id, clean(found.name) + placeOf(wrapping, target, found), shown, what];
    }),
  );
  if (rows.length === 0) {
    terminal.say(`No host that was found has an entry in its file.\n`);
    return Exit.Ok;
  }
  const heads = ["Host", "Entry", "Behind", "What it is"];
  const widths = heads.map((_, column) => Math.max(...[heads, ...rows].map((row) => widthOf(row[column] ?? ""))) + 2);
  const toLine = (row: readonly string[]) => {
    const line = row
      .map((cell, column) => (column === heads.length - 1 ? cell : pad(cell, widths[column] ?? 0)))
      .join("");
    return `${isPainted(terminal) ? cut(line, terminal.columns) : line}\n`;
  };
  const { bold, dim, green } = isPainted(terminal) ? terminal.colors : plain;
  const paint = ([, , state]: readonly string[]) => (state === "yes" ? green : state === "–" ? dim : String);
  terminal.print(bold(toLine(heads)) + rows.map((row) => paint(row)(toLine(row))).join(""));
  terminal.say(nextSteps(wrapping, rows));
  tellUnreached(wrapping, scopes);
  return Exit.Ok;
}

/** Which folder or file an entry is of, where it is not one of everything that the user does. */
function placeOf(wrapping: Wrapping, { scope, file }: WrapTarget, { folder }: Pick<FoundEntry, "folder">): string {
  if (folder !== undefined) return ` (${shorten(folder, wrapping)})`;
  return scope === "project" && wrapping.scope === "user" ? ` (${shorten(file, wrapping)})` : "";
}

const maxFolders = 5;

/** Names what setup has not changed, and does not change. */
export function tellUnreached(wrapping: Wrapping, { missingFolders, projectFiles, managedFiles }: Scopes): void {
  const { terminal } = wrapping;
  const { dim } = terminal.colors;
  const shown = missingFolders.slice(0, maxFolders).map((folder) => shorten(folder, wrapping));
  const more = missingFolders.length - shown.length;
  const folders = [...shown, ...(more > 0 ? [`${more} more`] : [])];
  const lines = [
    ...(folders.length === 0
      ? []
      : [`not reached: ${join(folders)} (no such folder, or not readable); a .mcp.json there stays as it is`]),
    ...projectFiles.map(
      ({ host, file }) =>
        `${host.title}: ${shorten(file, wrapping)} is a project's file; to change it, run ${thisProgram.name} setup with --project there`,
    ),
    ...managedFiles.map(
      ({ host, file }) =>
        `${host.title}: ${clean(file)} was left alone: it is the file of this machine's administrator`,
    ),
  ];
  if (lines.length > 0) terminal.say(lines.map((line) => `${dim("·")} ${line}\n`).join(""));
}

/** Whether it is behind us, and what it is; or why it stays where it is. */
function stateOf(entry: unknown, host: SetupHost, isThere: (file: string) => boolean): [string, string] {
  const behind = isObject(entry) && wrapWordsOf(entry) !== undefined ? rebuild(entry, host) : undefined;
  if (behind !== undefined) return ["yes", stateOf(behind, host, isThere)[1]];
  const server = readServer(entry, isThere);
  if (server.kind === "none")
    return server.isWrapped === true ? ["yes", `behind ${thisProgram.title}`] : ["–", server.why];
  if (server.kind === "url") return ["no", URL.canParse(server.url) ? new URL(server.url).origin : "an address"];
  return ["no", clean(firstWords(server.words))];
}

/** The program, without its folder, and its first words: what comes behind a flag, or stands in an address, may be a key. */
function firstWords([program = "", ...args]: readonly string[]): string {
  const end = args.findIndex((word) => /^--|=|:\/\//.test(word));
  return [program.split(/[\\/]/).at(-1) ?? "", ...args.slice(0, end < 0 ? 3 : Math.min(end, 3))].join(" ");
}

function nextSteps({ terminal, scope }: Wrapping, rows: readonly (readonly string[])[]): string {
  const { cyan } = terminal.colors;
  const flag = scope === "project" ? " --project" : "";
  const open = rows.filter(([, , state]) => state === "no");
  const [host = "", name = ""] = open[0] ?? [];
  const words = /\s/.test(name) ? JSON.stringify(name) : name;
  const steps = [
    ...(open.length > 0
      ? [
          [`--wrap ${words}${flag}`, `it runs behind ${thisProgram.title} then, and no longer times out`],
          [`--wrap ${host}${flag}`, "every entry of that host"],
          [`--wrap --all${flag}`, `${open.length === 1 ? "the one" : `all ${open.length}`} that can be`],
          [`--wrap --dry-run${flag}`, "shows what would change"],
        ]
      : []),
    ...(rows.some(([, , state]) => state === "yes")
      ? [[`--unwrap --all${flag}`, "brings them back as they were"]]
      : []),
  ];
  const width = Math.max(0, ...steps.map(([typed]) => typed?.length ?? 0)) + 2;
  const lines = steps.map(
    ([typed = "", what]) => `  ${cyan(`${thisProgram.name} setup ${typed.padEnd(width)}`)}${what}\n`,
  );
  return lines.length === 0 ? "" : `\n${lines.join("")}`;
}

/** What became of the entries of one file. */
export function tellWrap(
  wrapping: Wrapping,
  { kind, target, done, left }: WrapChange,
  { backup, isDryRun }: { backup: string | undefined; isDryRun: boolean },
): void {
  const { terminal } = wrapping;
  const { green, dim, red } = terminal.colors;
  const file = shorten(target.file, wrapping);
  const namesOf = (some: typeof done) =>
    join(some.map((one) => clean(one.name) + (one.folder === undefined ? "" : placeOf(wrapping, target, one))));
  const [repaired, others] = [
    done.filter(({ isRepaired }) => isRepaired),
    done.filter(({ isRepaired }) => !isRepaired),
  ];
  const what = [
    ...(repaired.length > 0 ? [`repaired ${namesOf(repaired)} in ${file}`] : []),
    ...(others.length === 0
      ? []
      : [kind === "wrapped" ? `wrapped ${namesOf(others)} in ${file}` : `brought ${namesOf(others)} back in ${file}`]),
  ];
  const notes = [...new Set(done.flatMap(({ note }) => note ?? []))].map((note) => ({
    note,
    of: join(done.filter((one) => one.note === note).map(({ name }) => clean(name))),
  }));
  const lines = [
    ...(isDryRun ? [] : what.map((sentence) => `${green("✓")} ${target.host.title}: ${sentence}`)),
    ...(backup === undefined ? [] : [`  ${dim("Backup")}   ${shorten(backup, wrapping)}`]),
    ...notes.map(({ note, of }) => `  ${dim("Note")}     ${of}: ${note}`),
    ...left.map(
      ({ name, why, isFailure }) =>
        `${isFailure ? red("✗") : dim("·")} ${target.host.title}: ${clean(name)} was left alone: ${cleanLines(why)}`,
    ),
  ];
  if (lines.length > 0) terminal.say(`${lines.join("\n")}\n`);
}

/** What the person does next, and how it is taken back. */
export function tellEnd(
  { kind, terminal, scope }: Wrapping,
  done: readonly WrapChange[],
  { isDryRun, isTold }: { isDryRun: boolean; isTold: boolean },
): void {
  const { dim } = terminal.colors;
  if (done.length === 0) {
    if (!isTold) terminal.say(kind === "wrapped" ? "No host has an entry to wrap.\n" : "No entry is wrapped.\n");
    return;
  }
  if (isDryRun) return;
  const titles = [...new Set(done.map(({ target }) => target.host.title))];
  const flag = scope === "project" ? " --project" : "";
  const why = `, and their tools last as long as they take`;
  const shared = done.flatMap(({ target }) => (target.isTracked === true ? [quoted(target.file)] : []));
  const words = ["--unwrap", ...(shared.length < done.length ? ["--all"] : []), ...shared].join(" ");
  const back = `${dim("Take back")}  ${thisProgram.name} setup ${words}${flag}\n`;
  terminal.say(`${dim("Next")}       start ${join(titles)} again${kind === "wrapped" ? `${why}\n${back}` : "\n"}`);
}

function join(names: readonly string[]): string {
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
