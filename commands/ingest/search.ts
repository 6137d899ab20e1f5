import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { readTerms } from "./_query.ts";
import { search } from "./_search.ts";
import { withIngested } from "./_store.ts";

export default defineCommand({
  summary: "Search what has been ingested, best matches first",
  description:
    '"Quotes" find a phrase, a star after three or more letters finds every word that begins so. Case and accents do not count.',
  input: z.object({
    query: z.string().min(1).max(2_000).describe('What to look for, e.g. kubernetes "rolling update" deploy*'),
    limit: z.number().int().min(1).max(100).default(10),
    offset: z.number().int().min(0).max(900).default(0).describe("For the next page"),
    source: z.string().default("").describe("Only from this one, e.g. claude-code"),
  }),
  output: z.object({
    query: z.string(),
    matched: z.enum(["all", "any"]),
    results: z.array(
      z.object({
        path: z.string(),
        title: z.string(),
        source: z.string(),
        engine: z.string(),
        line: z.number().int(),
        chunk: z.number().int(),
        score: z.number(),
        snippet: z.string(),
      }),
    ),
    count: z.number().int(),
    has_more: z.boolean(),
    ignored: z.array(z.string()),
    is_complete: z.boolean(),
  }),
  effects: "read",
  examples: ["invoices", '"rolling update" --limit 5'],
  summarize: ({ count, has_more, matched }) =>
    count === 0
      ? "Nothing found"
      : `${count}${has_more ? " and more" : ""} found${matched === "any" ? ", with some of the words" : ""}`,
  async run({ query, limit, offset, source }, task) {
    const terms = readTerms(query);
    if (terms.length === 0) throw new CommandError("`query` holds no word; give at least one letter or digit.");
    return await withIngested(task.home, (db) => {
      const { matched, hits, hasMore, ignored, isComplete } = search(db, terms, { limit, offset, source });
      return {
        query,
        matched,
        results: [...hits],
        count: hits.length,
        has_more: hasMore,
        ignored: [...ignored],
        is_complete: isComplete,
      };
    });
  },
});
