import { createHash } from "node:crypto";
import path from "node:path";
import { type CommandContext, CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { type Limits, limitsOf } from "../_pack/limits.ts";
import { joinBytes, showName } from "../_pack/paths.ts";
import { openReach, type Reach } from "../_pack/reach.ts";
import { readDocument } from "../_pack/readers.ts";
import { type Troubles, troubleFields } from "../_pack/trouble.ts";
import { withSource } from "../transform/_source.ts";
import { indexVault, maxNoteBytes } from "./_index.ts";
import { nameIn } from "./_names.ts";
import { type Proposal, proposeRepairs } from "./_proposals.ts";
import { keepCopy, replaceFile } from "./_replace.ts";
import { findVault, type Vault, vaultAliases, vaultField, withVaults } from "./_store.ts";

export default defineCommand({
  summary: "Propose what broken links should lead to, and write it when a person says so",
  description:
    "Gives the nearest name for each broken link that has one, with a plan. Nothing is written unless `apply` is that plan and a person confirms it.",
  input: z.object({
    ...vaultField,
    note: z.string().default("").describe("Only this note's links, by its path below the vault"),
    limit: z.number().int().min(1).max(1000).default(100).describe("How many proposals at most"),
    apply: z
      .string()
      .regex(/^(?:[0-9a-f]{12})?$/, "is no plan; run vault repair without it first")
      .default("")
      .describe("The plan to write, as a call without it gave it"),
  }),
  output: z.object({
    root: z.string(),
    plan: z.string(),
    proposals: z.array(z.object({ note: z.string(), line: z.number().int(), link: z.string(), proposal: z.string() })),
    broken_count: z.number().int(),
    without_proposal: z.number().int(),
    links_changed: z.number().int(),
    notes_changed: z.number().int(),
    backup: z.string(),
    ...troubleFields,
  }),
  effects: "destroy",
  aliases: vaultAliases,
  confirm: ({ apply }) =>
    apply === ""
      ? false
      : `Write plan ${apply} of vault repair into the notes? (\`vault repair\` shows it; copies are kept.)`,
  examples: ["", "--apply 3f1c09a2be47"],
  summarize: ({ broken_count, proposals, plan, links_changed, notes_changed, backup }) => {
    if (backup !== "") return `${links_changed} links in ${notes_changed} notes changed; copies in ${backup}`;
    const words = `${proposals.length} of ${broken_count} broken links have a proposal`;
    return plan === "" ? words : `${words}; --apply ${plan} writes them`;
  },
  async run({ vault: given, note, limit, apply }, task) {
    return await withVaults(task.home, async (db) => {
      const vault = findVault(db, given, task);
      const reach = openReach(task);
      const { kind, shown } = reach.resolve(showName(vault.root), "vault");
      if (kind !== "folder") throw new CommandError(`\`vault\` ${shown} is gone; \`vault index ${shown}\` forgets it.`);
      const { troubles } = await indexVault(db, vault, { ...task, reach });
      const { proposals, broken, without } = await proposeRepairs(db, vault.id, { note, limit, signal: task.signal });
      const plan = planOf(vault, proposals);
      if (apply !== "" && apply !== plan)
        throw new CommandError(
          `\`apply\` ${apply} is not what would be written now${plan === "" ? ", which is nothing" : ""}; run vault repair again with the same arguments and look at its proposals.`,
        );
      const written = apply === "" ? nothing : await write(vault, proposals, { task, reach, troubles, plan });
      if (apply !== "") await indexVault(db, vault, { ...task, reach });
      return {
        root: shown,
        plan,
        proposals: proposals.map(({ note: from, line, target, heading, written: proposal }) => ({
          note: from,
          line,
          link: heading === "" ? target : `${target}#${heading}`,
          proposal,
        })),
        broken_count: broken,
        without_proposal: without,
        ...written,
        ...troubles.toOutput(),
      };
    });
  },
});

const nothing = { links_changed: 0, notes_changed: 0, backup: "" };

/** Names the very proposals: what a person has seen is what is written. */
function planOf({ root }: Vault, proposals: readonly Proposal[]): string {
  if (proposals.length === 0) return "";
  const said = proposals.map(({ note, stamp, line, kind, target, heading, written }) => [
    note,
    stamp,
    line,
    kind,
    target,
    heading,
    written,
  ]);
  return createHash("sha256")
    .update(JSON.stringify([showName(root), said]))
    .digest("hex")
    .slice(0, 12);
}

interface Writing {
  readonly task: CommandContext;
  readonly reach: Reach;
  readonly troubles: Troubles;
  readonly plan: string;
}

async function write(
  vault: Vault,
  proposals: readonly Proposal[],
  { task, reach, troubles, plan }: Writing,
): Promise<typeof nothing> {
  const backup = path.join(task.home, "backups", "vault", `${new Date().toISOString().replaceAll(":", "-")}-${plan}`);
  const notes = [...Map.groupBy(proposals, ({ note }) => note)];
  const limits = limitsOf(task.config);
  let [links, changed] = [0, 0];
  for (const [at, [note, some]] of notes.entries()) {
    task.signal.throwIfAborted();
    task.progress({ done: at, total: notes.length, message: note });
    const whole = joinBytes(vault.root, some[0]?.file ?? Buffer.alloc(0));
    try {
      links += await repairNote(whole, some, {
        reach,
        limits,
        signal: task.signal,
        copy: path.join(backup, ...note.split("/")),
      });
      changed += 1;
    } catch (error) {
      task.signal.throwIfAborted();
      troubles.add(showName(whole), error);
    }
  }
  return { links_changed: links, notes_changed: changed, backup: changed === 0 ? "" : backup };
}

interface Repairing {
  readonly reach: Reach;
  readonly limits: Limits;
  readonly signal: AbortSignal;
  /** Where the note's copy goes. */
  readonly copy: string;
}

/** Writes a note's links anew, and says how many. The file that a link leads to is written, not the link. */
async function repairNote(
  whole: Buffer,
  proposals: readonly Proposal[],
  { reach, limits, signal, copy }: Repairing,
): Promise<number> {
  const { path: real } = reach.resolve(showName(whole), "note");
  return await withSource(real, { maxBytes: maxNoteBytes, reach }, async (source) => {
    if (source.stamp !== proposals[0]?.stamp) throw new Error("it has changed meanwhile");
    const before: Buffer[] = [];
    async function* pieces() {
      for await (const piece of source.pieces()) {
        before.push(Buffer.from(piece));
        yield piece;
      }
    }
    const how = {
      name: nameIn(proposals[0].note),
      replacements: proposals.map(({ line, kind, target, heading, written }) => ({
        line,
        kind,
        target,
        heading,
        written,
      })),
    };
    const { head, text } = await readDocument<{ changed: number }>(
      { domain: "vault", how, size: source.size, pieces },
      limits,
      signal,
    );
    if (head.changed === 0) throw new Error("its links are not where they were");
    keepCopy(copy, Buffer.concat(before));
    replaceFile(real, { stamp: source.stamp, bytes: Buffer.from(text) });
    return head.changed;
  });
}
