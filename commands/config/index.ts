import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { valueAt } from "./_user-file.ts";

export default defineCommand({
  summary: "Show the settings in force",
  description:
    "After flags, environment, config files and defaults, under the names that config_set knows; what cannot be set is under facts.",
  input: z.object({
    section: z.string().default("").describe("Only this setting, e.g. http or http.port"),
  }),
  effects: "read",
  positional: ["section"],
  examples: ["", "http"],
  summarize: () => "These settings are in force",
  run({ section }, task) {
    if (section === "") return task.config;
    const value = valueAt(task.config, section.split("."));
    if (value === undefined)
      throw new CommandError(
        `There is no setting \`${section}\`, or it has no value; known: ${Object.keys(task.config).join(", ")}.`,
      );
    return { [section]: value };
  },
});
