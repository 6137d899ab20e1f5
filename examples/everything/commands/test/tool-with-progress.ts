import { setTimeout as sleep } from "node:timers/promises";
import { content, defineCommand } from "meanwhile";

/** Longer than the time in which reports are drawn together into one. */
const stepMs = 120;

export default defineCommand({
  summary: "Says how far it is: 0, 50 and 100 of 100",
  effects: "read",
  async run(_input, task) {
    task.progress({ done: 0, total: 100 });
    await sleep(stepMs, undefined, { signal: task.signal });
    task.progress({ done: 50, total: 100 });
    await sleep(stepMs, undefined, { signal: task.signal });
    task.progress({ done: 100, total: 100 });
    return content("Tool with progress executed successfully");
  },
});
