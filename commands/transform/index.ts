import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { limitsOf } from "../_pack/limits.ts";
import { openReach } from "../_pack/reach.ts";
import { reasonOf } from "../_pack/reason.ts";
import { withCache } from "./_cache.ts";
import { engineNames } from "./_engines.ts";
import { transformFile } from "./_transform.ts";

export default defineCommand({
  summary: "Turn a file into plain text: PDF, Word, HTML, Markdown, CSV, JSON, code",
  description: "Use it to read a document that is no plain text; transform batch takes many.",
  input: z.object({
    file: z.string().describe("The file, e.g. ~/papers/draft.pdf"),
    engine: z
      .enum(["auto", ...engineNames])
      .default("auto")
      .describe("How to read it; auto goes by the file's ending"),
    links: z.boolean().default(false).describe("Keep the addresses of links behind their words (html, docx)"),
    max_characters: z
      .number()
      .int()
      .min(0)
      .max(2_000_000)
      .default(100_000)
      .describe("How much of the text to answer with; the whole lies in cache_file"),
    max_mb: z.number().int().min(1).max(512).default(64).describe("Larger files are refused"),
  }),
  output: z.object({
    source: z.string(),
    engine: z.enum(engineNames),
    sha256: z.string(),
    title: z.string(),
    facts: z.record(z.string(), z.union([z.string(), z.number()])),
    characters: z.number().int(),
    text: z.string(),
    is_truncated: z.boolean(),
    cached: z.boolean(),
    cache_file: z.string().nullable(),
  }),
  effects: "write",
  idempotent: true,
  aliases: [{ arguments: { file_path: "file" } }],
  examples: ["draft.pdf", "page.html --links", "data.tsv --engine csv --max-characters 2000"],
  summarize: ({ engine, characters, cached, title }) =>
    `${title}: ${characters} characters by ${engine}${cached ? ", from the cache" : ""}`,
  async run({ file, engine, links, max_characters, max_mb }, task) {
    const reach = openReach(task);
    const given = reach.resolve(file, "file");
    if (given.kind !== "file")
      throw new CommandError(
        `\`file\` ${given.shown} is ${given.kind === "missing" ? "not there; check the path" : "no file; transform batch takes many"}.`,
      );
    return await withCache(task.home, async (cache) => {
      const limits = limitsOf(task.config);
      const wish = { engine, options: { links }, maxBytes: max_mb * 1024 * 1024, reach, limits, signal: task.signal };
      const made = await transformFile(cache, given.path, wish).catch((error: unknown) => {
        task.signal.throwIfAborted();
        throw new CommandError(`\`file\` ${given.shown} was not transformed: ${reasonOf(error)}.`, { cause: error });
      });
      if (!made.isCached) cache.shrink();
      const text = cut(made.text, max_characters);
      return {
        source: given.shown,
        engine: made.engine,
        sha256: made.sha256,
        title: made.title,
        facts: { ...made.facts },
        characters: made.text.length,
        text,
        is_truncated: text.length < made.text.length,
        cached: made.isCached,
        cache_file: made.file ?? null,
      };
    });
  },
});

/** The beginning of a text, without half a character at its end. */
function cut(text: string, length: number): string {
  return text.slice(0, length).replace(/[\ud800-\udbff]$/, "");
}
