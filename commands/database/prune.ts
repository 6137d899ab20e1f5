import { defineCommand } from "meanwhile";
import { z } from "zod";
import { withPack } from "../_pack/database.ts";
import { countPrunable, prunableCollections } from "./_prune.ts";

/** Until history knows better. */
const filesPerSecond = 20_000;

export default defineCommand({
  summary: "Forget files and folders that no longer exist",
  description:
    "Deletes what is recorded about files that are gone. Files that cannot be looked at are kept, and so are a vault's notes: vault index takes care of those.",
  input: z.object({
    domain: z.string().default("all").describe("Only what these commands recorded: monitor, vault, ingest, …"),
  }),
  output: z.object({
    checked_count: z.number().int(),
    deleted_count: z.number().int(),
    collections: z.array(z.object({ name: z.string(), checked: z.number().int(), deleted: z.number().int() })),
  }),
  long: true,
  estimate: ({ domain }, { home }) => countPrunable(home, domain) / filesPerSecond,
  effects: "write",
  idempotent: true,
  complete: { domain: () => ["all", "monitor", "vault", "transform", "ingest"] },
  examples: ["", "--domain monitor"],
  summarize: ({ checked_count, deleted_count }) => `${deleted_count} of ${checked_count} are gone and were forgotten`,
  run({ domain }, task) {
    return withPack(task.home, async (db) => {
      const collections: { name: string; checked: number; deleted: number }[] = [];
      for (const prunable of prunableCollections(db, domain)) {
        task.progress({ message: `Looking for the files of ${prunable.name}` });
        collections.push({ name: prunable.name, ...(await prunable.prune(db, task.signal)) });
      }
      const sum = (field: "checked" | "deleted") => collections.reduce((all, collection) => all + collection[field], 0);
      return { checked_count: sum("checked"), deleted_count: sum("deleted"), collections };
    });
  },
});
