import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Show the settings in force",
  description: "After flags, environment, config files and defaults have been put together.",
  input: z.object({
    section: z.string().default("").describe("Only this setting, e.g. http"),
  }),
  effects: "read",
  positional: ["section"],
  examples: ["", "http"],
  summarize: () => "These settings are in force",
  run({ section }, task) {
    if (section === "") return task.config;
    if (!Object.hasOwn(task.config, section)) throw new CommandError(`There is no setting \`${section}\`; known: ${Object.keys(task.config).join(", ")}.`);
    return { [section]: task.config[section] };
  },
});
