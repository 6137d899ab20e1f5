import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import { openHome } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { connectionsBesidePool } from "../../queue/node-connections.ts";
import { queueFrom } from "../../settings/from-environment.ts";
import { checkStore, migrateStore } from "../../store/manage.ts";
import { describeStore, memoryStore, refuseOtherUrl, storeAt, storeOf } from "../../store/open.ts";
import { storeView } from "../screens/store-view.ts";
import { clean } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { copyStore } from "./copy-store.ts";

export const subverbs = { check, migrate, copy };

/** `meanwhile store check` */
async function check(typed: TypedVerb): Promise<ExitCode> {
  const { options, terminal, context } = typed;
  const store = storeMeant(typed);
  const facts = await checkStore(store, await connectionsBesidePool({ store, queue: queueFrom(context.env) }));
  if (options.json === true) terminal.print(`${JSON.stringify(facts, null, 2)}\n`);
  else terminal.print(storeView(facts, terminal));
  return facts.problems.length === 0 ? Exit.Ok : Exit.CommandFailed;
}

/** `meanwhile store migrate` */
async function migrate(typed: TypedVerb): Promise<ExitCode> {
  const { terminal } = typed;
  const store = storeMeant(typed);
  const { from, to } = await migrateStore(store);
  const place = clean(describeStore(store));
  if (from === to) terminal.print(`Nothing to do: ${place} has schema ${to}.\n`);
  else terminal.print(from === 0 ? `${place} was made, with schema ${to}.\n` : `${place}: schema ${from} → ${to}.\n`);
  return Exit.Ok;
}

/** `meanwhile store copy` */
async function copy({ options, terminal, context: { cwd } }: TypedVerb): Promise<ExitCode> {
  const { from, to } = options;
  if (typeof from !== "string" || typeof to !== "string")
    throw new UsageError("`store copy` takes --from and --to, each the path of an SQLite file or a postgres:// URL.");
  await copyStore(storeNamed(from, cwd), storeNamed(to, cwd), terminal);
  return Exit.Ok;
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
