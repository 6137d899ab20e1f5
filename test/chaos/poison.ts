import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";

/** Ends its own process, each time it is run. */
export default defineCommand({
  summary: "Ends its process",
  input: z.object({ how: z.enum(["abort", "end", "exit", "heap", "buffers"]) }),
  idempotent: true,
  isolation: "process",
  async run({ how }) {
    if (how === "abort") process.abort();
    if (how === "end") process.kill(process.pid, "SIGTERM");
    if (how === "exit") process.exit(3);
    const hoard: unknown[] = [];
    for (;;) {
      hoard.push(how === "heap" ? Array<number>(4_000_000).fill(0.5) : Buffer.alloc(32 * 1024 * 1024, 1));
      await new Promise((resolve) => setImmediate(resolve));
    }
  },
});
