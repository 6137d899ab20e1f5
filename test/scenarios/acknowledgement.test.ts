import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { shareAmongTests } from "../helpers/home.ts";
import { kindOf, taskIdOf } from "../helpers/project.ts";
import { openServer } from "../helpers/server.ts";
import { callInThread, type ThreadTarget } from "../helpers/thread-client.ts";
import { resultOf } from "../helpers/wire.ts";

/**
 * The ID of a task is with its client before the run begins: here each run blocks the server's thread from its first
 * line, until the client has the ID.
 */

/** What runs do first, by the names of their tests. */
const blocks = new Map<string, () => void>();

const commands = {
  block_loop: defineCommand({
    summary: "Blocks the server's thread until the client has the ID",
    long: true,
    dedupe: false,
    estimate: () => 86_400,
    input: z.object({ test: z.string() }),
    run({ test: title }): object {
      blocks.get(title)?.();
      return {};
    },
  }),
};

const targets: Readonly<Record<string, () => Promise<ThreadTarget>>> = {
  "a daemon's socket": shareAmongTests(async () => {
    const { daemons } = await openServer({ in: "daemon", commands });
    await daemons.start(["--no-bundled"]);
    return { socket: daemons.daemon.socket };
  }),
  HTTP: shareAmongTests(async () => {
    const server = await openServer({ in: "http", commands });
    return { url: await server.url(), headers: { authorization: `Bearer ${server.token()}` } };
  }),
};

const extension = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const jobs = { experimental: { "meanwhile/jobs": {} } };
const kinds = [
  { kind: "task of 2025", options: { revision: "2025-11-25" }, more: { task: {} } },
  { kind: "task of 2026", options: { revision: "2026-07-28", capabilities: extension }, more: {} },
  { kind: "handle", options: { revision: "2025-06-18" }, more: {} },
  { kind: "job", options: { revision: "2025-06-18", capabilities: jobs }, more: {} },
] as const;

/** Makes calls at once; the first run blocks until all are answered. Returns the answers, and whether they came then. */
async function callAtOnce(
  target: ThreadTarget,
  { options, more }: Pick<(typeof kinds)[number], "options" | "more">,
  count: number,
) {
  const title = expect.getState().currentTestName ?? "";
  const isInTime = Promise.withResolvers<boolean>();
  const params = { name: "block_loop", arguments: { test: title }, ...more };
  const client = callInThread(
    target,
    options,
    Array.from({ length: count }, () => params),
  );
  blocks.set(title, () => isInTime.resolve(client.blockUntilAnswered(count)));
  expect(await isInTime.promise, "the IDs came while the run blocked").toBe(true);
  return (await client.answers).map(resultOf);
}

describe.each(Object.entries(targets))("over %s", (_title, open) => {
  test.each(kinds)("the ID of a $kind comes before the run blocks everything", async ({ kind, ...how }) => {
    const [result = {}] = await callAtOnce(await open(), how, 1);
    expect([kindOf(result), taskIdOf(result)]).toEqual([kind, expect.any(String)]);
  });
});

test("3 calls sent at once have their 3 IDs before the first run begins", async () => {
  const target = await targets["a daemon's socket"]?.();
  const results = await callAtOnce(target as ThreadTarget, kinds[0], 3);
  expect(new Set(results.map(taskIdOf)).size).toBe(3);
});
