import { setTimeout as sleep } from "node:timers/promises";
import { content, defineCommand } from "meanwhile";

export default defineCommand({
  summary: "Logs three lines while it runs",
  effects: "read",
  async run(_input, task) {
    task.log.info("Tool execution started");
    await sleep(50, undefined, { signal: task.signal });
    task.log.info("Tool processing data");
    await sleep(50, undefined, { signal: task.signal });
    task.log.info("Tool execution completed");
    return content("Tool with logging executed successfully");
  },
});
