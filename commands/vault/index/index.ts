import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { openReach } from "../../_pack/reach.ts";
import { hiddenField, Troubles, troubleFields } from "../../_pack/trouble.ts";
import { countQuickly } from "../../_pack/walk.ts";
import { forgetVault, type IndexCounts, indexVault } from "../_index.ts";
import { countAll, totalFields, type Vault, withVaults } from "../_store.ts";

/** Until history knows better: notes that are read. Looking at one that has not changed takes a tenth of that. */
const filesPerSecond = 1_000;

export default defineCommand({
  summary: "Index a folder of Markdown notes: links, tags, headings, backlinks",
  description:
    "Reads the notes that are new or changed, forgets those that vanished, and resolves their links. Run it before vault links or vault status.",
  input: z.object({ path: z.string().describe("The vault's folder, e.g. ~/notes") }),
  output: z.object({
    root: z.string(),
    notes_parsed: z.number().int(),
    notes_unchanged: z.number().int(),
    files_removed: z.number().int(),
    ...totalFields,
    ...hiddenField,
    ...troubleFields,
    duration_seconds: z.number(),
  }),
  long: true,
  estimate: ({ path }, call) => countQuickly(openReach(call).resolve(path).path, { recursive: true }) / filesPerSecond,
  effects: "write",
  idempotent: true,
  examples: ["~/notes", "."],
  summarize: ({ notes, files, links, broken_links, notes_parsed, files_removed }) =>
    notes + files === 0 && files_removed > 0
      ? `Nothing is left; ${files_removed} files were forgotten`
      : `${notes} notes (${notes_parsed} read), ${links} links, ${broken_links} broken`,
  async run({ path }, task) {
    const startedAt = performance.now();
    const reach = openReach(task);
    const { path: root, shown, kind } = reach.resolve(path);
    task.announce(`Indexing ${shown}`);
    return await withVaults(task.home, async (db) => {
      const known = db.prepare("select id, root, indexed_at as indexedAt from vault_vaults where root = ?").get(root) as
        | Vault
        | undefined;
      if (kind !== "folder" && known === undefined)
        throw new CommandError(
          `\`path\` ${shown} is ${kind === "missing" ? "not there" : "no folder"}; give the folder that holds the notes.`,
        );
      const toOutput = (vault: number, { parsed, unchanged, removed, hidden, troubles }: IndexCounts) => ({
        root: shown,
        notes_parsed: parsed,
        notes_unchanged: unchanged,
        files_removed: removed,
        ...countAll(db, vault),
        hidden,
        ...troubles.toOutput(),
        duration_seconds: Math.round(performance.now() - startedAt) / 1000,
      });
      if (kind !== "folder" && known !== undefined) {
        const removed = await forgetVault(db, known, task);
        task.log.warn(
          `The folder ${shown} is gone; its ${removed} notes and other files, with their links, were forgotten.`,
        );
        return toOutput(known.id, { parsed: 0, unchanged: 0, removed, hidden: 0, troubles: new Troubles() });
      }
      const upsert = db.prepare(
        "insert into vault_vaults (root, is_persons) values (?, ?) on conflict (root) do update set is_persons = max(is_persons, excluded.is_persons) returning id, root, indexed_at as indexedAt",
      );
      const vault = upsert.get(root, task.origin.door === "terminal" ? 1 : 0) as Vault;
      const counts = await indexVault(db, vault, { ...task, reach });
      db.prepare("update vault_vaults set indexed_at = ? where id = ?").run(Date.now(), vault.id);
      return toOutput(vault.id, counts);
    });
  },
});
