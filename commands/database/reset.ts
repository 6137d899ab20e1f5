import type Database from "better-sqlite3";
import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { maxRowsAtOnce, withPack, writeAtOnce } from "../_pack/database.ts";
import { createPace } from "../_pack/walk.ts";
import { removeForgotten } from "../transform/_cache.ts";
import { domainsOf, quote, readCollections } from "./_collections.ts";

const domains = ["all", "monitor", "vault", "transform", "ingest"] as const;

export default defineCommand({
  summary: "Forget everything the commands of a domain have recorded",
  description:
    "Settings such as filters and priorities stay, and so do your files; a next sync or index records them again. Texts that transform has cached are removed.",
  input: z.object({ domain: z.enum(domains).describe("Whose; `database list` shows what there is") }),
  output: z.object({
    domain: z.string(),
    deleted_count: z.number().int(),
    files_removed: z.number().int(),
    collections: z.array(z.object({ name: z.string(), deleted: z.number().int() })),
  }),
  effects: "destroy",
  idempotent: true,
  confirm: ({ domain }) =>
    `Delete everything that ${domain === "all" ? "all bundled commands have" : `${domain} has`} recorded?`,
  examples: ["monitor"],
  summarize: ({ deleted_count, domain }) => `${deleted_count} rows of ${domain} deleted`,
  run({ domain }, task) {
    return withPack(task.home, async (db) => {
      const known = domainsOf(db).sort();
      if (domain !== "all" && !known.includes(domain))
        throw new CommandError(`\`domain\` ${domain} has recorded nothing; known: ${["all", ...known].join(", ")}.`);
      const tables = readCollections(db).filter(
        ({ kind, name, domain: owner }) =>
          kind === "table" && !name.endsWith("_settings") && [owner, "all"].includes(domain),
      );
      const collections: { name: string; deleted: number }[] = [];
      // What points to another table goes first.
      for (const { name } of inOrder(db, tables))
        collections.push({ name, deleted: await empty(db, name, task.signal) });
      const files_removed = tables.some(({ domain: owner }) => owner === "transform")
        ? await removeForgotten(db, task.home, task.signal)
        : 0;
      return {
        domain,
        deleted_count: collections.reduce((sum, { deleted }) => sum + deleted, 0),
        files_removed,
        collections,
      };
    });
  },
});

/** Tables that refer to others before those. */
function inOrder<T extends { readonly name: string }>(db: Database.Database, tables: readonly T[]): T[] {
  const left = new Map(tables.map((table) => [table.name, table]));
  const referredBy = new Map(
    tables.map(({ name }) => [
      name,
      (db.pragma(`foreign_key_list(${quote(name)})`) as { table: string }[]).map(({ table }) => table),
    ]),
  );
  const ordered: T[] = [];
  while (left.size > 0) {
    const free = [...left.values()].filter(
      ({ name }) => ![...left.keys()].some((other) => other !== name && referredBy.get(other)?.includes(name)),
    );
    for (const table of free.length > 0 ? free : left.values()) {
      ordered.push(table);
      left.delete(table.name);
    }
  }
  return ordered;
}

/** Row by row in short writes, so that others get their turn; whole tables at once would lock them out. */
async function empty(db: Database.Database, name: string, signal: AbortSignal): Promise<number> {
  const keys = (db.pragma(`table_info(${quote(name)})`) as { name: string; pk: number }[])
    .filter(({ pk }) => pk > 0)
    .map((column) => quote(column.name));
  const isKeyed = (db.pragma("table_list") as { name: string; wr: number }[]).some(
    (table) => table.name === name && table.wr === 1,
  );
  const key = isKeyed ? `(${keys.join(", ")})` : "rowid";
  const columns = isKeyed ? keys.join(", ") : "rowid";
  const remove = db.prepare(
    `delete from ${quote(name)} where ${key} in (select ${columns} from ${quote(name)} limit ${maxRowsAtOnce})`,
  );
  const pace = createPace(signal);
  let deleted = 0;
  for (;;) {
    const { changes } = writeAtOnce(db, () => remove.run());
    if (changes === 0) return deleted;
    deleted += changes;
    if (pace.isOver()) await pace.giveWay();
  }
}
