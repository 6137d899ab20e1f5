import path from "node:path";
import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Show where the settings come from",
  output: z.object({
    home: z.string(),
    user: z.string(),
    project: z.string().nullable(),
  }),
  effects: "read",
  summarize: ({ project }) =>
    project === null ? "No config file in this project" : `This project has ${path.basename(project)}`,
  run(_input, task) {
    const { configFile } = (task.config.facts ?? {}) as { readonly configFile?: unknown };
    return {
      home: task.home,
      user: path.join(task.home, "config.json"),
      project: typeof configFile === "string" ? configFile : null,
    };
  },
});
