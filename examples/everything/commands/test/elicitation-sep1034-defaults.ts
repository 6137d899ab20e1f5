import { content, defineCommand } from "meanwhile";
import { z } from "zod";

const form = z.object({
  name: z.string().default("John Doe"),
  age: z.int().default(30),
  score: z.number().default(95.5),
  status: z.enum(["active", "inactive", "pending"]).default("active"),
  verified: z.boolean().default(true),
});

export default defineCommand({
  summary: "Asks with a form whose fields are filled in already",
  effects: "read",
  run: async (_input, task) =>
    content(`Elicitation completed: ${JSON.stringify(await task.ask("Please check the form", form))}`),
});
