/** A busy client of the local user starts many short tasks. */
import { expect, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { openServer, placeOf } from "../helpers/server.ts";

const quick = defineCommand({ summary: "End at once", effects: "read", run: () => ({}) });

test.each(["stdio", "HTTP"] as const)(
  "5,000 starts of short tasks, 64 in flight, over %s: none is refused",
  async (over) => {
    const server = await openServer({ in: placeOf[over], commands: { quick }, store: "sqlite" });
    const client = await server.client("tasks-2025");
    const refused: unknown[] = [];
    let left = 5_000;
    const startAll = async () => {
      while (left > 0) {
        left -= 1;
        const { result, error } = await client.request("tools/call", { name: "quick", arguments: {}, task: {} });
        if (result?.task === undefined) refused.push(error ?? result);
      }
    };
    await Promise.all(Array.from({ length: 64 }, startAll));
    expect(refused.slice(0, 3)).toEqual([]);
  },
);
