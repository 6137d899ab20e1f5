import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Give a text back",
  input: z.object({ text: z.string() }),
  output: z.object({ text: z.string() }),
  effects: "read",
  run: ({ text }) => ({ text }),
});
