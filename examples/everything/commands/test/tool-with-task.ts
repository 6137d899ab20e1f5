import { setTimeout as sleep } from "node:timers/promises";
import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Asks for a name, then works for a while",
  long: true,
  async run(_input, task) {
    const { name } = await task.ask("What is your name?", z.object({ name: z.string() }));
    await sleep(500, undefined, { signal: task.signal });
    return content(`Done, ${name}.`);
  },
});
