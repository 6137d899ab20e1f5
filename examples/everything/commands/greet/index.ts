import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Greets somebody, at once",
  input: z.object({ name: z.string() }),
  effects: "read",
  run: ({ name }) => content(`Hello, ${name}!`),
});
