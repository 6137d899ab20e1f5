import { localKeyOf } from "../../command/caller.ts";
import { CommandError } from "../../errors.ts";
import type { Home } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { readHomeId } from "../../runtime/home-id.ts";
import { type EarlierRows, sumOf } from "../../store/earlier-rows.ts";
import { countEarlierRows, giveBackRows, takeEarlierRows } from "../../store/manage.ts";
import { describeStore, isAcrossMachines } from "../../store/open.ts";
import { askInTerminal, clean, type Terminal } from "../terminal.ts";

/** Rows of the local user of a version that did not tell homes apart: `store migrate` gives them to this home, and back. */

interface Meant {
  readonly store: string;
  readonly home: Home;
  readonly terminal: Terminal;
  /** The person has said yes already. */
  readonly isConfirmed: boolean;
}

/** True unless there are such rows that this home did not take. */
export async function takeRows({ store, home, terminal, isConfirmed }: Meant): Promise<boolean> {
  const rows = await countEarlierRows(store);
  const what = describe(rows);
  if (what === undefined) return true;
  terminal.print(
    `${clean(describeStore(store))} has ${what} of the local user of a version that did not tell homes apart. No caller sees them:\n${byProject(rows)}Back the store up before you take them: ${clean(backupOf(store))}\nFirst stop every server and worker of that version.\n`,
  );
  if (!isConfirmed && !(await isMeant("Give them to this home?", terminal))) return false;
  const taken = await takeEarlierRows(store, keyOf(home));
  terminal.print(
    `This home took ${describe(taken) ?? "nothing"}; \`${thisProgram.name} store migrate --undo\` gives them back.\n`,
  );
  return true;
}

/** Gives back what this home took. */
export async function giveRowsBack({ store, home, terminal, isConfirmed }: Meant): Promise<void> {
  if (!isConfirmed && !(await isMeant("Give back the rows that this home took? No caller sees them then.", terminal)))
    throw new CommandError("Nothing was changed.");
  const rows = await giveBackRows(store, keyOf(home));
  const what = describe(rows);
  if (what === undefined) terminal.print(`Nothing to do: this home took no rows of ${clean(describeStore(store))}.\n`);
  else terminal.print(`This home gave back ${what}:\n${byProject(rows)}`);
}

function keyOf(home: Home): string {
  return localKeyOf(readHomeId(home));
}

async function isMeant(message: string, terminal: Terminal): Promise<boolean> {
  if (!terminal.canAsk)
    throw new CommandError(`${message} Nobody can be asked here; run the same line again with --yes.`);
  const schema = {
    type: "object",
    properties: { yes: { type: "boolean", default: false } },
    required: ["yes"],
  };
  const answer = await askInTerminal({ message, isConfirmation: false, schema }, terminal);
  return answer.action === "accept" && answer.content.yes === true;
}

/** Undefined for none. */
export function describe(rows: readonly EarlierRows[]): string | undefined {
  const { tasks, sessions } = sumOf(rows);
  const parts = [...count(tasks, "task"), ...count(sessions, "session")];
  return parts.length === 0 ? undefined : parts.join(" and ");
}

function count(number: number, word: string): string[] {
  return number === 0 ? [] : [`${number} ${word}${number === 1 ? "" : "s"}`];
}

function byProject(rows: readonly EarlierRows[]): string {
  return rows.map((row) => `  project ${clean(row.project)}: ${describe([row]) ?? "nothing"}\n`).join("");
}

/** How the store is backed up, without its password. */
function backupOf(store: string): string {
  if (!isAcrossMachines(store)) return `sqlite3 '${store}' ".backup '${store}.backup'"`;
  const url = new URL(store);
  const schema = url.searchParams.get("schema") ?? defaultSchema;
  url.password = "";
  url.search = "";
  return `pg_dump --format=custom --schema=${schema} --file=${schema}.dump '${url.href}'`;
}

const defaultSchema = "meanwhile";
