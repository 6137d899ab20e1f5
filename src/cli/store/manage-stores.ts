import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import { openHome } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { connectionsBesidePool } from "../../queue/node-connections.ts";
import { queueFrom } from "../../settings/from-environment.ts";
import { checkStore, migrateStore } from "../../store/manage.ts";
import { describeStore, memoryStore, refuseOtherUrl, storeAt, storeOf } from "../../store/open.ts";
import type { StoreFacts } from "../../store/store-facts.ts";
import { storeView } from "../screens/store-view.ts";
import { clean } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { copyStore } from "./copy-store.ts";
import { describe, giveRowsBack, takeRows } from "./take-rows.ts";

export const subverbs = { check, migrate, copy };

/** `meanwhile store check` */
async function check(typed: TypedVerb): Promise<ExitCode> {
  const { options, terminal, context } = typed;
  const store = storeMeant(typed);
  const found = await checkStore(store, await connectionsBesidePool({ store, queue: queueFrom(context.env) }));
  const problems = isOwn(store, context) ? found.problems : [...found.problems, ...problemOfEarlier(found.earlier)];
  const facts = { ...found, problems };
  if (options.json === true) terminal.print(`${JSON.stringify(facts, null, 2)}\n`);
  else terminal.print(storeView(facts, terminal));
  return facts.problems.length === 0 ? Exit.Ok : Exit.CommandFailed;
}

/** `meanwhile store migrate` */
async function migrate(typed: TypedVerb): Promise<ExitCode> {
  const { terminal, options, context } = typed;
  const store = storeMeant(typed);
  const meant = { store, home: openHome(context.env), terminal, isConfirmed: options.yes === true };
  if (options.undo === true) {
    await giveRowsBack(meant);
    return Exit.Ok;
  }
  const { from, to } = await migrateStore(store);
  const place = clean(describeStore(store));
  if (from === to) terminal.print(`Nothing to do: ${place} has schema ${to}.\n`);
  else terminal.print(from === 0 ? `${place} was made, with schema ${to}.\n` : `${place}: schema ${from} → ${to}.\n`);
  // The rows of a home's own file are the home's, and are rewritten when it is opened.
  return isOwn(store, context) || (await takeRows(meant)) ? Exit.Ok : Exit.CommandFailed;
}

/** `meanwhile store copy` */
async function copy({ options, terminal, context: { cwd } }: TypedVerb): Promise<ExitCode> {
  const { from, to } = options;
  if (typeof from !== "string" || typeof to !== "string")
    throw new UsageError("`store copy` takes --from and --to, each the path of an SQLite file or a postgres:// URL.");
  await copyStore(storeNamed(from, cwd), storeNamed(to, cwd), terminal);
  return Exit.Ok;
}

/** Whether a store is the database of this very home. */
function isOwn(store: string, { env }: TypedVerb["context"]): boolean {
  return store === openHome(env).tasksFile;
}

function problemOfEarlier(earlier: StoreFacts["earlier"]): string[] {
  const what = describe([{ project: "", ...earlier }]);
  return what === undefined
    ? []
    : [
        `No caller sees ${what} of the local user of a version that did not tell homes apart: \`${thisProgram.name} store migrate\` gives them to the home that runs it.`,
      ];
}

function storeMeant({ options: { store }, context: { cwd, env } }: TypedVerb): string {
  const meant = typeof store === "string" ? storeNamed(store, cwd) : storeOf(openHome(env), env, cwd);
  if (meant === memoryStore)
    throw new UsageError(
      `${thisProgram.variable("STORE")} keeps tasks in memory, where only their own process sees them.`,
    );
  refuseOtherUrl(meant);
  return meant;
}

function storeNamed(word: string, cwd: string): string {
  if (word === memoryStore)
    throw new UsageError("A store in memory ends with its process; name a file or a postgres:// URL.");
  const store = storeAt(word, cwd, "name a file in a folder of your own");
  refuseOtherUrl(store);
  return store;
}
