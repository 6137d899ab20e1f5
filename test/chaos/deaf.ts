import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";

/** Starts a process, writes down both ids, and stays; when deaf, it hears nothing from then on. */
export default defineCommand({
  summary: "Ignores its signal",
  input: z.object({ pidFile: z.string(), isDeaf: z.boolean() }),
  idempotent: true,
  isolation: "process",
  async run({ pidFile, isDeaf }) {
    const grandchild = spawn("sleep", ["60"], { stdio: "ignore" });
    writeFileSync(pidFile, JSON.stringify([process.pid, grandchild.pid]));
    const end = Date.now() + 60_000;
    while (isDeaf && Date.now() < end);
    await new Promise((resolve) => setTimeout(resolve, 60_000));
    return {};
  },
});
