import { defineCommand } from "meanwhile";
import { z } from "zod";
import { withCache } from "./_cache.ts";

export default defineCommand({
  summary: "Show how full the cache of texts is, or set its limit",
  description:
    "Above the limit, the texts that were unused longest are removed. They are made again when they are needed.",
  input: z.object({
    limit_mb: z.number().int().min(1).max(100_000).optional().describe("The new limit in megabytes; 256 at first"),
  }),
  output: z.object({
    entries: z.number().int(),
    bytes: z.number().int(),
    limit_bytes: z.number().int(),
    removed: z.number().int(),
  }),
  effects: "write",
  idempotent: true,
  examples: ["", "--limit-mb 1024"],
  summarize: ({ entries, bytes, limit_bytes }) => `${entries} texts, ${toMb(bytes)} of ${toMb(limit_bytes)} MB`,
  async run({ limit_mb }, task) {
    return await withCache(task.home, async (cache) => {
      if (limit_mb !== undefined) cache.setLimit(limit_mb * 1024 * 1024);
      const removed = cache.shrink() + (await cache.sweep(task.signal));
      return { ...cache.size(), limit_bytes: cache.limitBytes(), removed };
    });
  },
});

const toMb = (bytes: number) => Math.round(bytes / 1024 / 1024);
