import { appendFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";

/** A safe command in a process of its own. Stands alone, because that process loads this file and no other. */
export default defineCommand({
  summary: "May run again, in a process of its own",
  input: z.object({ key: z.string(), ms: z.number() }),
  idempotent: true,
  isolation: "process",
  async run({ key, ms }, task) {
    const note = (what: string) =>
      appendFileSync(
        path.join(task.home, "runs.jsonl"),
        `${JSON.stringify({ key, what, attempt: task.attempt, pid: process.pid })}\n`,
      );
    note("start");
    task.progress("half of it");
    await wait(ms, undefined, { signal: task.signal });
    note("finish");
    return { key, attempt: task.attempt, pid: process.pid };
  },
});
