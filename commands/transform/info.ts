import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { withCache } from "./_cache.ts";
import { describeEngines, engineNames } from "./_engines.ts";

export default defineCommand({
  summary: "Show one engine: what it makes, its library, its options, what the cache holds of it",
  input: z.object({ engine: z.enum(engineNames).describe("Which engine, e.g. pdf") }),
  output: z.object({
    engine: z.enum(engineNames),
    summary: z.string(),
    library: z.string(),
    endings: z.array(z.string()),
    options: z.array(z.string()),
    version: z.number().int(),
    cached_entries: z.number().int(),
    cached_bytes: z.number().int(),
  }),
  effects: "read",
  examples: ["pdf"],
  summarize: ({ engine, cached_entries }) => `${engine}: ${cached_entries} texts in the cache`,
  async run({ engine }, task) {
    const described = describeEngines().find(({ name }) => name === engine);
    if (described === undefined)
      throw new CommandError(`There is no engine ${engine}; known: ${engineNames.join(", ")}.`);
    const { summary, library, endings, options, version } = described;
    const { entries, bytes } = await withCache(task.home, (cache) => cache.size(engine));
    return {
      engine,
      summary,
      library,
      endings: [...endings],
      options: [...options],
      version,
      cached_entries: entries,
      cached_bytes: bytes,
    };
  },
});
