import { defineCommand } from "meanwhile";
import { z } from "zod";
import { describeEngines } from "./_engines.ts";

export default defineCommand({
  summary: "List the engines that turn files into text, and the endings they take",
  output: z.object({
    engines: z.array(z.object({ engine: z.string(), summary: z.string(), endings: z.array(z.string()) })),
  }),
  effects: "read",
  examples: [""],
  summarize: ({ engines }) => `${engines.length} engines`,
  run: () => ({
    engines: describeEngines().map(({ name, summary, endings }) => ({ engine: name, summary, endings: [...endings] })),
  }),
});
