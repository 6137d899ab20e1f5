import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { connect, followUps, type Sdk, sdks, type TestClient, type TransportName } from "../helpers/clients.ts";
import { shareAmongTests, temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { openServer, placeOf } from "../helpers/server.ts";

// SDK clients drop progress that they read together with the answer. The server leaves a gap between the two; a client
// that the machine keeps from reading for that long drops it all the same, and that is not ours to hold: hence the
// retries.
const options = { retry: 3 };
const commands = path.resolve(import.meta.dirname, "../fixtures/clients/commands");
const servers = {
  stdio: shareAmongTests(() => openServer({ in: placeOf.stdio, commands })),
  HTTP: shareAmongTests(() => openServer({ in: placeOf.HTTP, commands })),
};

for (const sdk of sdks) {
  for (const transport of sdk.transports) {
    test(
      `${sdk.title} over ${transport} lists, calls, sees strictly increasing progress and cancels`,
      options,
      async () => {
        const server = await servers[transport]();
        const client = await connect(sdk, await server.target({ isAnonymous: true }));
        await listsTools(client, sdk, transport);
        await calls(client, sdk);
        await seesProgress(client);
        await cancels(client);
      },
    );
  }
}

/**
 * Annotations came with 2025-03-26, output schemas and structured content with 2025-06-18, which SDK 1.11.5 knew
 * already.
 */
const knowsStructure = (sdk: Sdk) => sdk.revision >= "2025-03-26";

async function listsTools(client: TestClient, sdk: Sdk, transport: TransportName): Promise<void> {
  const tools = await client.listTools();
  expect(tools.map((tool) => tool.name)).toEqual([
    "notes_erase",
    "text_bare",
    "text_shout",
    "work_count",
    "work_wait",
    ...followUps(transport),
  ]);
  expect(await client.listTools()).toEqual(tools);
  expect(tools.map((tool) => tool.description)).toContain("Say it louder");
  expect(tools.find((tool) => tool.name === "text_shout")?.inputSchema).toMatchObject({
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
  });
  if (!knowsStructure(sdk)) return;
  expect(Object.fromEntries(tools.map((tool) => [tool.name, tool.annotations]))).toMatchObject({
    notes_erase: { readOnlyHint: false, destructiveHint: true, idempotentHint: false },
    text_bare: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
    text_shout: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
    work_count: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
    work_wait: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  });
  expect(tools.filter((tool) => tool.outputSchema?.type === "object").map((tool) => tool.name)).toEqual([
    "text_bare",
    "text_shout",
    "work_count",
  ]);
  expect(Object.keys(tools.find((tool) => tool.name === "text_shout")?.outputSchema?.properties ?? {})).toEqual(
    expect.arrayContaining(["success", "data", "messages"]),
  );
}

async function calls(client: TestClient, sdk: Sdk): Promise<void> {
  const shouted = await client.call("text_shout", { text: "hello" });
  const envelope = JSON.parse(shouted.content[0]?.text ?? "");
  expect(envelope).toMatchObject({ success: true, data: { shouted: "HELLO!", letters: 5 } });
  expect(shouted.isError ?? false).toBe(false);
  if (knowsStructure(sdk)) expect(shouted.structuredContent).toEqual(envelope);

  const bare = await client.call("text_bare", { text: "one two three" });
  expect(JSON.parse(bare.content[0]?.text ?? "")).toEqual({ words: 3 });
  if (knowsStructure(sdk)) expect(bare.structuredContent).toEqual({ words: 3 });

  const refused = await client.call("text_shout", { text: 5 });
  expect(refused.isError).toBe(true);
  expect(refused.content[0]?.text).toContain("text");
}

async function seesProgress(client: TestClient): Promise<void> {
  const values: number[] = [];
  const before = client.received.length;
  const counted = await client.call(
    "work_count",
    { to: 14 },
    { onprogress: ({ progress }) => void values.push(progress) },
  );
  expect(counted.isError ?? false).toBe(false);
  await client.call("notes_erase");

  expect(values.length).toBeGreaterThanOrEqual(3);
  expect(values).toEqual([...new Set(values)].sort((a, b) => a - b));
  expect(values.at(-1)).toBe(14);
  // Whatever was sent has been seen, and nothing was sent after the result.
  expect(client.received.slice(before)).toEqual([...values.map(() => "notifications/progress"), "answer", "answer"]);
  expect(client.errors).toEqual([]);
}

async function cancels(client: TestClient): Promise<void> {
  const file = path.join(temporaryFolder(), "signal.txt");
  const lines = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []);
  const stop = new AbortController();
  const ended = expect(client.call("work_wait", { file }, { signal: stop.signal })).rejects.toBeDefined();
  await waitFor(
    () => lines().length === 1,
    () => "work_wait was never started",
  );
  stop.abort(new Error("not needed any more"));
  await ended;
  await waitFor(
    () => lines().length === 2,
    () => "work_wait was never told to stop",
  );
  expect(lines()).toEqual(["started", "stopped: Cancelled"]);

  const next = await client.call("text_shout", { text: "still here" });
  expect(JSON.parse(next.content[0]?.text ?? "").data).toEqual({ shouted: "STILL HERE!", letters: 10 });
}
