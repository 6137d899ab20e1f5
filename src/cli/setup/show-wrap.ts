import { Exit, type ExitCode } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { cut, pad, widthOf } from "../../screen/width.ts";
import { isObject } from "../../setup/change.ts";
import type { SetupHost, SetupScope } from "../../setup/host.ts";
import type { Machine } from "../../setup/machine.ts";
import { wrapWordsOf } from "../../setup/ownership.ts";
import type { SetupRecord } from "../../setup/setup-record.ts";
import { readServer } from "../../setup/wrap/entry-server.ts";
import type { WrapMeans } from "../../setup/wrap/plan-wrap.ts";
import type { OpenedFile, WrapChange } from "../../setup/wrap/wrap-file.ts";
import type { WrapRecord } from "../../setup/wrap/wrap-record.ts";
import { rebuild } from "../../setup/wrap/wrapped-entry.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";
import { isPainted, plain, shorten } from "./show-setup.ts";

/** What is to be done to entries, and with what. */
export interface Wrapping {
  readonly kind: WrapChange["kind"];
  readonly machine: Machine;
  readonly scope: SetupScope;
  readonly terminal: Terminal;
  readonly records: { readonly setup: SetupRecord; readonly wrap: WrapRecord };
  readonly means: WrapMeans;
}

/** Lists the entries that hosts have, and what to do next. Changes nothing. */
export function showEntries(wrapping: Wrapping, files: readonly OpenedFile[]): ExitCode {
  const { terminal, means } = wrapping;
  const rows = files.flatMap(({ target, entries }) =>
    entries.map((found) => [target.host.id, clean(found.name), ...stateOf(found.entry, target.host, means)]),
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
  return Exit.Ok;
}

/** Whether it is behind us, and what it is; or why it stays where it is. */
function stateOf(entry: unknown, host: SetupHost, { isThere }: Pick<WrapMeans, "isThere">): [string, string] {
  const behind = isObject(entry) && wrapWordsOf(entry) !== undefined ? rebuild(entry, host) : undefined;
  if (behind !== undefined) return ["yes", stateOf(behind, host, { isThere })[1]];
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
  const names = done.map(({ name }) => clean(name));
  const file = shorten(target.file, wrapping);
  const what = kind === "wrapped" ? `wrapped ${join(names)} in ${file}` : `brought ${join(names)} back in ${file}`;
  const notes = [...new Set(done.flatMap(({ note }) => note ?? []))].map((note) => ({
    note,
    of: join(done.filter((one) => one.note === note).map(({ name }) => clean(name))),
  }));
  const lines = [
    ...(names.length === 0 || isDryRun ? [] : [`${green("✓")} ${target.host.title}: ${what}`]),
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
  const back = `${dim("Take back")}  ${thisProgram.name} setup --unwrap --all${flag}\n`;
  terminal.say(`${dim("Next")}       start ${join(titles)} again${kind === "wrapped" ? `${why}\n${back}` : "\n"}`);
}

function join(names: readonly string[]): string {
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
