import { defineCommand } from "meanwhile";
import { z } from "zod";
import { showName } from "../_pack/paths.ts";
import { countAll, findVault, totalFields, vaultAliases, vaultField, warnWhenGone, withVaults } from "./_store.ts";

export default defineCommand({
  summary: "Show what is known of a vault: counts, the most used tags, when it was indexed",
  input: z.object({
    ...vaultField,
  }),
  output: z.object({
    root: z.string(),
    indexed_at: z.string().nullable(),
    ...totalFields,
    top_tags: z.array(z.object({ tag: z.string(), notes: z.number().int() })),
    vaults: z.array(z.string()),
  }),
  effects: "read",
  positional: ["vault"],
  aliases: vaultAliases,
  examples: ["", "--vault ~/notes"],
  summarize: ({ root, notes, links, broken_links }) =>
    `${root}: ${notes} notes, ${links} links, ${broken_links} broken`,
  async run({ vault: given }, task) {
    return await withVaults(task.home, (db) => {
      const vault = findVault(db, given, task);
      warnWhenGone(vault, task.log);
      const tags = db.prepare(
        `select tag, count(*) as notes from vault_tags join vault_files on vault_files.id = note where vault = ? group by tag order by notes desc, tag limit 20`,
      );
      const roots = db.prepare("select root from vault_vaults order by root").pluck().all() as Buffer[];
      return {
        root: showName(vault.root),
        indexed_at: vault.indexedAt === null ? null : new Date(vault.indexedAt).toISOString(),
        ...countAll(db, vault.id),
        top_tags: tags.all(vault.id) as { tag: string; notes: number }[],
        vaults: roots.map(showName),
      };
    });
  },
});
