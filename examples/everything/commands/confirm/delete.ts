import { CommandError, content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Pretends to delete a file, once the person has said yes in the middle of the run",
  input: z.object({ filename: z.string() }),
  effects: "destroy",
  confirm: false,
  long: true,
  async run({ filename }, task) {
    const { confirm } = await task.ask(`Delete ${filename}?`, z.object({ confirm: z.boolean() }));
    if (!confirm) throw new CommandError(`${filename} was kept.`);
    return content(`Deleted ${filename}.`);
  },
});
