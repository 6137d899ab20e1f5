import { defineCommand } from "meanwhile";
import { z } from "zod";
import { withPack } from "../_pack/database.ts";
import { columnsOf, findCollection, quote } from "./_collections.ts";
import { readPage } from "./_page.ts";
import { parseQuery } from "./_query.ts";

const maxLimit = 1_000;

export default defineCommand({
  summary: "Show rows of a collection, page by page",
  description:
    "`database list` names the collections. Names of files are shown with unusual bytes percent-escaped, hashes in hex, very large numbers as text.",
  input: z.object({
    collection: z.string().describe("Its name, e.g. monitor_tracked"),
    query: z
      .string()
      .default("")
      .describe(
        'Only rows that fit this JSON object, e.g. {"size":{"gt":1000}}; eq, ne, gt, gte, lt, lte, like; times also as 2026-01-31',
      ),
    limit: z.number().int().min(1).max(maxLimit).default(50).describe("How many rows at most"),
    cursor: z.string().default("").describe("`next_cursor` of the page before"),
  }),
  output: z.object({
    collection: z.string(),
    total: z.number().int(),
    count: z.number().int(),
    rows: z.array(z.record(z.string(), z.union([z.string(), z.number(), z.null()]))),
    next_cursor: z.string().nullable(),
  }),
  effects: "read",
  examples: ["monitor_tracked", `monitor_tracked --query '{"size":{"gt":1000}}' --limit 10`],
  summarize: ({ collection, count, total }) => `${count} of ${total} rows of ${collection}`,
  run({ collection: name, query, limit, cursor }, task) {
    return withPack(task.home, (db) => {
      const collection = findCollection(db, name);
      const condition = parseQuery(query, columnsOf(db, collection).names);
      const total = db
        .prepare(`select count(*) from ${quote(name)} where ${condition.sql}`)
        .pluck()
        .get(condition.values) as number;
      const { rows, nextCursor } = readPage(db, collection, { condition, limit, cursor });
      return { collection: name, total, count: rows.length, rows, next_cursor: nextCursor };
    });
  },
});
