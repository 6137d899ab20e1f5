import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { type CallResult, connect, newestV1 } from "../helpers/clients.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startMeanwhile } from "../helpers/meanwhile.ts";
import { openServer } from "../helpers/server.ts";
import { overPipes, WireClient } from "../helpers/wire.ts";

// On the clock on the wall, with nothing set: what the README promises. Beside the others it costs no time.

const ninetySeconds = `import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Take a minute and a half",
  input: z.object({ file: z.string() }),
  output: z.object({ seconds: z.number() }),
  async run({ file }, task) {
    appendFileSync(file, "started\\n");
    await sleep(90_000, undefined, { signal: task.signal });
    return { seconds: 90 };
  },
});`;

interface Handle {
  readonly job_id: string;
  readonly status: string;
  readonly next_action: { readonly tool: string; readonly arguments: object };
}

const project = () => writeFiles(temporaryFolder(), { "commands/slow/work.ts": ninetySeconds });
const dataOf = (result: CallResult) => result.structuredContent?.data as Record<string, unknown>;
const secondsSince = (startedAt: number) => (performance.now() - startedAt) / 1000;

test("an SDK v1 client on its 60 s default calls a 90 s command over stdio: a handle, then the result, one run", {
  timeout: 240_000,
}, async () => {
  const cwd = project();
  const file = path.join(cwd, "starts");
  const server = await openServer({ in: "process", cwd, commands: path.join(cwd, "commands") });
  const client = await connect(newestV1, await server.target());
  const startedAt = performance.now();
  const [first] = await Promise.all([client.call("slow_work", { file }), takesTasks()]);
  const answeredAfter = secondsSince(startedAt);
  expect(dataOf(first)).toMatchObject({ status: "working", next_action: { tool: "task_result" } });
  expect(first.content[0]?.text).toContain(
    "slow_work is still running. It goes on by itself. Get its result with task_result",
  );
  // A host that is not known may give up after 30 s.
  expect(answeredAfter).toBeGreaterThan(22);
  expect(answeredAfter).toBeLessThan(30);

  const asked: string[] = [];
  let result = first;
  while (dataOf(result).seconds === undefined) {
    const { tool, arguments: input } = (dataOf(result) as unknown as Handle).next_action;
    asked.push(JSON.stringify(input));
    result = await client.call(tool, input);
  }
  expect(result.structuredContent).toMatchObject({ success: true, data: { seconds: 90 } });
  expect(result.isError ?? false).toBe(false);
  expect(asked.length).toBeGreaterThanOrEqual(1);
  expect(new Set(asked).size, "no two follow-up calls are equal").toBe(asked.length);
  expect(readFileSync(file, "utf8")).toBe("started\n");
  expect(client.errors).toEqual([]);
});

/** While the other one waits: a client of 2026-07-28 that takes tasks gets one after 10 s. */
async function takesTasks(): Promise<void> {
  const cwd = project();
  const { child } = startMeanwhile(["serve", "--in-process", "--no-bundled"], { cwd });
  const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
  const client = new WireClient(overPipes(child), { revision: "2026-07-28", capabilities });
  const file = path.join(cwd, "starts");
  const startedAt = performance.now();
  expect(await client.call("slow_work", { file })).toMatchObject({ resultType: "task", status: "working" });
  expect(secondsSince(startedAt)).toBeGreaterThan(9.5);
  expect(secondsSince(startedAt)).toBeLessThan(40);
  expect(readFileSync(file, "utf8")).toBe("started\n");
}
