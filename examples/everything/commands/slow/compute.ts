import { setTimeout as sleep } from "node:timers/promises";
import { content, defineCommand } from "meanwhile";
import { z } from "zod";

const stepMs = 1000;

export default defineCommand({
  summary: "Takes as many seconds as it is told to, and stops when it is cancelled",
  input: z.object({ seconds: z.number().min(0), label: z.string() }),
  long: true,
  estimate: ({ seconds }) => seconds,
  effects: "read",
  async run({ seconds, label }, task) {
    for (let doneMs = 0; doneMs < seconds * 1000; ) {
      const nextMs = Math.min(stepMs, seconds * 1000 - doneMs);
      await sleep(nextMs, undefined, { signal: task.signal });
      doneMs += nextMs;
      task.progress({ done: doneMs / 1000, total: seconds, message: label });
    }
    return content(`${label}: computed for ${seconds} s`);
  },
});
