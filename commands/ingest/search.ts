import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { readTerms } from "./_query.ts";
import { search } from "./_search.ts";
import { withIngested } from "./_store.ts";

export default defineCommand({
  summary: "Search what has been ingested, best matches first",
  description:
    'Finds chunks that hold all words, or else any of them. "Quotes" find a phrase, a star after three or more letters finds every word that begins so. Case and accents do not count.',
  input: z.object({
    query: z.string().min(1).max(2_000).describe('What to look for, e.g. kubernetes "rolling update" deploy*'),
    limit: z.number().int().min(1).max(100).default(10).describe("How many to list at most"),
    offset: z.number().int().min(0).max(900).default(0).describe("How many of the best to pass over, for the next page"),
    source: z.string().default("").describe("Only what came from this source of ingest discover, e.g. claude-code"),
  }),
  output: z.object({
    query: z.string(),
    matched: z.enum(["all", "any"]).describe("Whether the chunks hold all words, or only some"),
    results: z.array(
      z.object({
        path: z.string(),
        title: z.string(),
        source: z.string().describe("Empty for paths that were given to ingest sources"),
        engine: z.string(),
        line: z.number().int().describe("Where the chunk begins, in the file's text"),
        chunk: z.number().int().describe("Which chunk of the file, from 0"),
        score: z.number().describe("Higher is better; comparable within one search"),
        snippet: z.string().describe("The words found are between « and »"),
      }),
    ),
    count: z.number().int(),
    has_more: z.boolean(),
    ignored: z.array(z.string()).describe("Words of the query that are so common that they were left out"),
    is_complete: z.boolean().describe("False when the words are so common that only the newest matches were ranked"),
  }),
  effects: "read",
  examples: ["invoices", '"rolling update" --limit 5'],
  summarize: ({ count, has_more, matched }) =>
    count === 0 ? "Nothing found" : `${count}${has_more ? " and more" : ""} found${matched === "any" ? ", with some of the words" : ""}`,
  async run({ query, limit, offset, source }, task) {
    const terms = readTerms(query);
    if (terms.length === 0) throw new CommandError("`query` holds no word; give at least one letter or digit.");
    return await withIngested(task.home, (db) => {
      const { matched, hits, hasMore, ignored, isComplete } = search(db, terms, { limit, offset, source });
      return { query, matched, results: [...hits], count: hits.length, has_more: hasMore, ignored: [...ignored], is_complete: isComplete };
    });
  },
});
