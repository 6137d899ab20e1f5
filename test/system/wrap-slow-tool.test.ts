import { readFileSync } from "node:fs";
import path from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { expect, test } from "vitest";
import { WrapHome } from "../helpers/gated.ts";
import { cleanUp, writeFiles } from "../helpers/home.ts";
import { codeCache, executable } from "../helpers/meanwhile.ts";
import { rounds } from "../helpers/rounds.ts";
import { type Handle, handleOf, type Result } from "../helpers/wire.ts";

const everything = path.resolve("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
const tool = "trigger-long-running-operation";

/** In real time. The times of CI are about eight times shorter; not less, as a busy machine may need a second to answer. */
const { wrappedToolSeconds: seconds, clientLimitSeconds: limitSeconds } = rounds;
const config = limitSeconds === undefined ? {} : { hosts: { scenario: { limitSeconds } } };
const options = limitSeconds === undefined ? undefined : { timeout: limitSeconds * 1_000 };

test(`a ${seconds} s silent tool of server-everything, wrapped, called by an SDK v1 client that gives up after ${limitSeconds ?? 60} s: a handle, then the result, one upstream run`, {
  timeout: 240_000,
}, async () => {
  const home = new WrapHome();
  writeFiles(home.home, { "config.json": JSON.stringify(config) });
  const sent = path.join(home.cwd, "sent");
  const client = new Client({ name: "scenario", version: "1.0.0" });
  cleanUp(() => client.close());
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      // What the upstream is sent is written down on its way.
      args: [executable, "wrap", "--", "/bin/sh", "-c", 'tee sent | "$0" "$1"', process.execPath, everything],
      cwd: home.cwd,
      env: { ...(process.env as Record<string, string>), NODE_COMPILE_CACHE: codeCache, ...home.env },
      stderr: "ignore",
    }),
  );
  const call = async (name: string, input: object) =>
    (await client.callTool({ name, arguments: { ...input } }, undefined, options)) as unknown as Result;

  // In one step it says nothing until it is done.
  let result = await call(tool, { duration: seconds, steps: 1 });
  const handles: Handle[] = [];
  while (result.structuredContent?.data?.job_id !== undefined) {
    const handle = handleOf(result);
    handles.push(handle);
    result = await call(handle.next_action.tool, handle.next_action.arguments);
  }
  expect(handles.length).toBeGreaterThanOrEqual(1);
  expect(handles[0]).toMatchObject({ status: "working", next_action: { tool: "task_result" } });
  expect(result.content).toEqual([
    { type: "text", text: `Long running operation completed. Duration: ${seconds} seconds, Steps: 1.` },
  ]);
  const calls = readFileSync(sent, "utf8")
    .split("\n")
    .filter((line) => line.includes('"tools/call"'));
  expect(calls).toEqual([expect.stringContaining(tool)]);
});
