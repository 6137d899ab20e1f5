import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Pretends to delete a file, once the person has said yes",
  input: z.object({ filename: z.string() }),
  effects: "destroy",
  confirm: ({ filename }) => `Delete ${filename}?`,
  long: true,
  run: ({ filename }) => content(`Deleted ${filename}.`),
});
