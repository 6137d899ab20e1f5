import type Database from "better-sqlite3";
import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { showName } from "../_pack/paths.ts";
import { lastOf, toKey } from "./_names.ts";
import { findVault, type Vault, vaultField, withVaults } from "./_store.ts";

interface Edge {
  readonly from: string;
  readonly to: string;
  readonly line: number;
  readonly kind: string;
  readonly heading: string;
  readonly alias: string;
  readonly state: string;
}

export default defineCommand({
  summary: "Show what a note links to and what links to it",
  description: "Answers from the index: run vault index first, and again after notes have changed.",
  input: z.object({
    note: z.string().describe("The note's path below the vault, or its name, e.g. projects/plan.md or plan"),
    direction: z
      .enum(["both", "to", "from"])
      .default("both")
      .describe("`to`: backlinks alone; `from`: the note's own links alone"),
    ...vaultField,
    limit: z.number().int().min(1).max(1000).default(100),
  }),
  output: z.object({
    vault: z.string(),
    path: z.string(),
    direction: z.string(),
    edges: z.array(
      z.object({
        from: z.string(),
        to: z.string(),
        line: z.number().int(),
        kind: z.enum(["wiki", "embed", "markdown"]),
        heading: z.string(),
        alias: z.string(),
        state: z.enum(["resolved", "no_note", "no_heading", "no_block", "external", "pending"]),
      }),
    ),
    count: z.number().int(),
    total: z.number().int(),
  }),
  effects: "read",
  examples: ["plan", "projects/plan.md --direction to"],
  summarize: ({ path, count, total }) => `${path}: ${total} links${count < total ? `, ${count} of them listed` : ""}`,
  async run({ note, direction, vault: given, limit }, task) {
    return await withVaults(task.home, (db) => {
      const vault = findVault(db, given, task);
      const { id, shown } = findNote(db, vault, note);
      const where = { both: "links.note = @id or links.dest = @id", to: "links.dest = @id", from: "links.note = @id" }[
        direction
      ];
      const edges = db.prepare(
        `select sources.shown as "from", coalesce(targets.shown, links.target) as "to", line, kind, heading, alias, state
        from vault_links links join vault_files sources on sources.id = links.note left join vault_files targets on targets.id = links.dest
        where ${where} order by links.note <> @id, sources.shown, line, links.id limit @limit`,
      );
      const listed = edges.all({ id, limit }) as Edge[];
      const total = db.prepare(`select count(*) from vault_links links where ${where}`).pluck().get({ id }) as number;
      return {
        vault: showName(vault.root),
        path: shown,
        direction,
        edges: listed as never,
        count: listed.length,
        total,
      };
    });
  },
});

/** So many are named where one has to be chosen. */
const maxNamed = 50;

/** A note by its path below the vault, else by its name when only one has it. */
function findNote(db: Database.Database, vault: Vault, given: string): { id: number; shown: string } {
  const root = `${showName(vault.root)}/`;
  const key = toKey((given.startsWith(root) ? given.slice(root.length) : given).replace(/^\.?\//, ""));
  const named = db.prepare(
    `select id, shown, path_key from vault_files where vault = @vault and name_key = @name
    and (path_key = @key or substr(path_key, -length(@below)) = @below) order by path_key <> @key, shown limit ${maxNamed}`,
  );
  const candidates = named.all({ vault: vault.id, name: lastOf(key), key, below: `/${key}` }) as {
    id: number;
    shown: string;
    path_key: string;
  }[];
  const exact = candidates.find(({ path_key }) => path_key === key);
  const fitting = exact === undefined ? candidates : [exact];
  const [only, another] = fitting;
  if (only === undefined)
    throw new CommandError(
      `\`note\` ${given} is not in the index of ${showName(vault.root)}; check the name, or run \`vault index\` again.`,
    );
  if (another !== undefined)
    throw new CommandError(
      `\`note\` ${given} could be ${fitting.map(({ shown }) => shown).join(", ")}; give the path of one.`,
    );
  return only;
}
