import { defineCommand } from "meanwhile";
import { z } from "zod";
import { showName } from "../_pack/paths.ts";
import { Troubles, troubleFields } from "../_pack/trouble.ts";
import { refreshVault } from "./_index.ts";
import { brokenStates, countAll, findVault, vaultAliases, vaultField, warnWhenGone, withVaults } from "./_store.ts";

const reasons: Readonly<Record<string, string>> = {
  no_note: "there is no such note or file",
  no_heading: "the note has no such heading",
  no_block: "the note has no such block",
};

export default defineCommand({
  summary: "List a vault's broken links",
  description:
    "Looks at the files as they are now: notes that have changed since the last time are read again. The vault must have been indexed once. Addresses on the web are not tried.",
  input: z.object({
    ...vaultField,
    limit: z.number().int().min(1).max(1000).default(100),
  }),
  output: z.object({
    root: z.string(),
    indexed_at: z.string().nullable(),
    notes_read: z.number().int(),
    notes_checked: z.number().int(),
    links_checked: z.number().int(),
    broken_count: z.number().int(),
    is_valid: z.boolean(),
    issues: z.array(z.object({ note: z.string(), line: z.number().int(), link: z.string(), reason: z.string() })),
    ...troubleFields,
  }),
  // Of the index, not of the notes.
  effects: "write",
  idempotent: true,
  positional: ["vault"],
  aliases: vaultAliases,
  examples: ["", "--limit 1000 --json"],
  summarize: ({ root, is_valid, broken_count, links_checked }) => {
    if (is_valid) return `All ${links_checked} links lead somewhere`;
    return broken_count === 0 ? `The folder ${root} is gone` : `${broken_count} of ${links_checked} links are broken`;
  },
  saysNo: ({ is_valid }) => !is_valid,
  async run({ vault: given, limit }, task) {
    return await withVaults(task.home, async (db) => {
      const vault = findVault(db, given, task);
      const isGone = warnWhenGone(vault, task.log);
      const { parsed, troubles } = (isGone ? undefined : await refreshVault(db, vault, task)) ?? {
        parsed: 0,
        troubles: new Troubles(),
      };
      const { notes, links, external_links, broken_links } = countAll(db, vault.id);
      const broken = db.prepare(
        `select shown as note, line, target, heading, state from vault_links join vault_files on vault_files.id = note
        where vault_links.vault = ? and state in ${brokenStates} order by shown, line, vault_links.id limit ?`,
      );
      const rows = broken.all(vault.id, limit) as {
        note: string;
        line: number;
        target: string;
        heading: string;
        state: string;
      }[];
      return {
        root: showName(vault.root),
        indexed_at: vault.indexedAt === null ? null : new Date(vault.indexedAt).toISOString(),
        notes_read: parsed,
        notes_checked: notes,
        links_checked: links - external_links,
        broken_count: broken_links,
        is_valid: !isGone && broken_links === 0,
        issues: rows.map(({ note, line, target, heading, state }) => ({
          note,
          line,
          link: heading === "" ? target : `${target}#${heading}`,
          reason: reasons[state] ?? state,
        })),
        ...troubles.toOutput(),
      };
    });
  },
});
