import { expect, onTestFinished, test } from "vitest";
import { anonymous, localUser } from "../../src/command/caller.ts";
import { defineCommand } from "../../src/command/command.ts";
import type { ClientRequest } from "../../src/mcp/request.ts";
import { WrittenResult, writeMessage } from "../../src/wire/message.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openInMemory } from "../helpers/in-memory.ts";
import { takesTasks } from "../helpers/wire.ts";

test("the tools are listed once for each kind of client, and written once for each era", async () => {
  const server = await openInMemory(
    { say_hello: defineCommand({ summary: "Say hello", run: () => ({}) }) },
    new FakeClock(),
  );
  onTestFinished(() => server.close());
  const list = async (caller: typeof localUser, revision: string, capabilities: object = {}) => {
    const router = server.serving.served.routerFor({ caller });
    const isModern = revision === "2026-07-28";
    const client = { revision, isModern, capabilities };
    const request = {
      caller,
      authentication: { caller },
      client,
      connection: {},
      guest: () => undefined,
    } as unknown as ClientRequest;
    const result = await (isModern ? router.modern : router.legacy).get("tools/list")?.({}, request);
    return router.finish("tools/list", result ?? {}, isModern);
  };
  const [first, again, modern, older, strangers, jobs, tasks] = [
    await list(localUser, "2025-11-25"),
    await list(localUser, "2025-11-25"),
    await list(localUser, "2026-07-28"),
    await list(localUser, "2025-06-18"),
    await list(anonymous, "2025-11-25"),
    await list(localUser, "2025-11-25", { experimental: { "meanwhile/jobs": {} } }),
    await list(localUser, "2026-07-28", takesTasks),
  ];
  expect(first).toBeInstanceOf(WrittenResult);
  expect(again).toBe(first);
  expect(new Set([first, modern, older, strangers, jobs, tasks]).size).toBe(6);
  const toolsIn = (result: unknown) =>
    JSON.parse(writeMessage({ id: "a", result })).result.tools as { name: string; execution?: unknown }[];
  expect(toolsIn(first)[0]).toMatchObject({ name: "say_hello", execution: { taskSupport: "optional" } });
  for (const result of [modern, older]) expect(toolsIn(result)[0]?.execution).toBeUndefined();
  expect(toolsIn(strangers).map(({ name }) => name)).not.toContain("task_list");
});
