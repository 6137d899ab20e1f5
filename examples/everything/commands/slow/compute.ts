import { setTimeout as sleep } from "node:timers/promises";
import { content, defineCommand } from "meanwhile";
import { z } from "zod";

const stepMs = 250;

export default defineCommand({
  summary: "Takes as many seconds as it is told to, and stops when it is cancelled",
  input: z.object({ seconds: z.number().min(0), label: z.string() }),
  long: true,
  estimate: ({ seconds }) => seconds,
  effects: "read",
  async run({ seconds, label }, task) {
    const steps = Math.ceil((seconds * 1000) / stepMs);
    for (let step = 1; step <= steps; step++) {
      await sleep(stepMs, undefined, { signal: task.signal });
      task.progress({ done: step, total: steps, message: label });
    }
    return content(`${label}: computed for ${seconds} s`);
  },
});
