import { statSync } from "node:fs";
import { defineCommand } from "meanwhile";
import { z } from "zod";
import { packFile, withPack } from "../_pack/database.ts";
import { quote, readCollections } from "./_collections.ts";

export default defineCommand({
  summary: "List what the bundled commands keep, and how much of it",
  output: z.object({
    database: z.string(),
    size_bytes: z.number().int(),
    collections: z.array(
      z.object({
        name: z.string(),
        domain: z.string(),
        kind: z.enum(["table", "view"]),
        rows: z.number().int(),
      }),
    ),
  }),
  effects: "read",
  summarize: ({ collections }) => `${collections.length} collections`,
  run(_input, task) {
    return withPack(task.home, (db) => ({
      database: db.name,
      size_bytes: statSync(packFile(task.home)).size,
      collections: readCollections(db).map((collection) => ({
        ...collection,
        rows: db
          .prepare(`select count(*) from ${quote(collection.name)}`)
          .pluck()
          .get() as number,
      })),
    }));
  },
});
