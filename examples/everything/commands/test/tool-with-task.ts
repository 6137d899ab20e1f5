import { setTimeout as sleep } from "node:timers/promises";
import { content, defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Asks for a name before anything is started, then works for a while as a task",
  input: z.object({ name: z.string().optional() }),
  long: true,
  taskSupport: "required",
  async before(input, ask) {
    if (input.name !== undefined) return;
    return await ask("What is your name?", z.object({ name: z.string() }));
  },
  async run({ name }, task) {
    await sleep(500, undefined, { signal: task.signal });
    return content(`Done, ${name}.`);
  },
});
