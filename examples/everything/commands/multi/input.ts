import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Asks two questions side by side",
  long: true,
  async run(_input, task) {
    const [{ name }, { confirm }] = await Promise.all([
      task.ask("What is your name?", z.object({ name: z.string() })),
      task.ask("Shall we go on?", z.object({ confirm: z.boolean() })),
    ]);
    return content(`${name} said ${confirm ? "yes" : "no"}.`);
  },
});
