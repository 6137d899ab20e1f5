import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Asks twice, the second time after the first answer",
  effects: "read",
  async run(_input, task) {
    const { name } = await task.ask("Step 1: What is your name?", z.object({ name: z.string() }));
    const { color } = await task.ask("Step 2: What is your favorite color?", z.object({ color: z.string() }));
    return content(`${name} likes ${color}.`);
  },
});
