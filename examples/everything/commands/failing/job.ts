import { setTimeout as sleep } from "node:timers/promises";
import { CommandError, defineCommand } from "meanwhile";

export default defineCommand({
  summary: "Works, then says that it failed; only as a task",
  long: true,
  taskSupport: "required",
  async run(_input, task) {
    await sleep(200, undefined, { signal: task.signal });
    throw new CommandError("This job always fails");
  },
});
