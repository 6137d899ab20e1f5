import { readFileSync } from "node:fs";
import path from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { expect, test } from "vitest";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { rounds } from "../helpers/rounds.ts";
import { type Handle, handleOf, type Result } from "../helpers/wire.ts";

const app = path.resolve(import.meta.dirname, "../fixtures/embed/slow-app.ts");

/** In real time. The times of CI are about eight times shorter; not less, as a busy machine may need a second to answer. */
const { slowToolSeconds: seconds, clientLimitSeconds } = rounds;
const limit = clientLimitSeconds === undefined ? [] : [String(clientLimitSeconds)];
const options = clientLimitSeconds === undefined ? undefined : { timeout: clientLimitSeconds * 1_000 };

test(`a ${seconds} s tool of an SDK server, called by a client that gives up after ${clientLimitSeconds ?? 60} s: a handle, then the result, one run`, {
  timeout: 240_000,
}, async () => {
  const file = path.join(temporaryFolder(), "starts");
  const client = new Client({ name: "scenario", version: "1.0.0" });
  cleanUp(() => client.close());
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [app, ...limit], stderr: "ignore" }),
  );
  const call = async (name: string, input: object) =>
    (await client.callTool({ name, arguments: { ...input } }, undefined, options)) as unknown as Result;

  let result = await call("work", { file, seconds });
  const handles: Handle[] = [];
  while (result.structuredContent?.data?.job_id !== undefined) {
    const handle = handleOf(result);
    handles.push(handle);
    result = await call(handle.next_action.tool, handle.next_action.arguments);
  }
  expect(handles.length).toBeGreaterThanOrEqual(1);
  expect(handles[0]).toMatchObject({ status: "working", next_action: { tool: "task_result" } });
  expect(result.content).toEqual([{ type: "text", text: `worked for ${seconds} s` }]);
  expect(readFileSync(file, "utf8")).toBe("started\n");
});
