import path from "node:path";
import { expect, test } from "vitest";
import { discover } from "../../../src/command/discover.ts";
import { Doors } from "../../fixtures/pack/doors.ts";
import { failuresIn, preparationsIn, samplesIn, writeSampleFiles } from "../../fixtures/pack/samples.ts";

/** All but diagnose_server, which needs a server to look at: test/scenarios/diagnose.test.ts. */
const found = discover(path.resolve(import.meta.dirname, "../../../commands")).filter(
  ({ toolName }) => toolName !== "diagnose_server",
);
const wordsOf = (tool: string) => found.find(({ toolName }) => toolName === tool)?.path ?? [];
/** Each door calls a command as its users do. */
const inWords = (tool: string, text: string) => text.replace(`for ${tool}:`, `for ${wordsOf(tool).join(" ")}:`);

test("every command says the same as an envelope, in the terminal and over MCP, when it succeeds and when it fails", {
  timeout: 180_000,
}, async () => {
  const doors = new Doors();
  writeSampleFiles(doors.folder);
  for (const [tool, input] of preparationsIn(doors.folder))
    expect(await doors.envelope(tool, input), tool).toMatchObject({ success: true });
  doors.save();

  const samples = samplesIn(doors.folder);
  // A command without a sample is one that nobody has looked at.
  expect(Object.keys(samples).sort()).toEqual(found.map(({ toolName }) => toolName).sort());
  for (const [tool, { input, words, times = [], saysNo }] of Object.entries(samples)) {
    const steady = (data: Readonly<Record<string, unknown>>) =>
      Object.fromEntries(Object.entries(data).filter(([field]) => !times.includes(field)));
    doors.restore();
    const envelope = await doors.envelope(tool, input);
    doors.restore();
    const terminal = await doors.terminal([...wordsOf(tool), ...words, "--json"]);
    doors.restore();
    const mcp = await doors.mcp(tool, input);
    expect(envelope, tool).toMatchObject({ success: true });
    expect(mcp, tool).toMatchObject({ success: true, isError: false, texts: envelope.texts, isTextTheData: true });
    expect(terminal, tool).toMatchObject({
      code: saysNo ? 1 : 0,
      stderr: expect.stringContaining(`${saysNo ? "✗" : "✓"} ${envelope.text}\n`),
    });
    for (const time of times)
      expect([envelope.data[time], mcp.data[time]], `${tool}: ${time}`).toEqual([
        expect.any(Number),
        expect.any(Number),
      ]);
    expect(steady(mcp.data), tool).toEqual(steady(envelope.data));
    expect(steady(JSON.parse(terminal.stdout)), tool).toEqual(steady(envelope.data));
  }

  for (const { tool, input, words, code } of failuresIn(doors.folder)) {
    doors.restore();
    const envelope = await doors.envelope(tool, input);
    expect(envelope, tool).toMatchObject({ success: false });
    expect(await doors.mcp(tool, input), tool).toMatchObject({ ...envelope, isError: true, isTextTheData: true });
    const terminal = await doors.terminal([...wordsOf(tool), ...words, "--json"]);
    expect(terminal, tool).toMatchObject({
      code,
      stderr: expect.stringContaining(`✗ ${inWords(tool, envelope.text)}\n`),
    });
    expect(JSON.parse(terminal.stdout), tool).toMatchObject({
      error: { message: inWords(tool, envelope.text), exitCode: code },
    });
  }

  // On the same server: what the commands may do, and the shape of what they give, are listed.
  const tools = await (await doors.client()).listTools();
  // A model reads all of it before its first call: it was 79 kB once, and stays a third below that. `async` is for
  // clients of the jobs dialect.
  const read = JSON.stringify(tools, (key, value) => (key === "async" && value === true ? undefined : value));
  expect(Buffer.byteLength(read)).toBeLessThan((79_000 * 2) / 3);
  expect(Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]))).toMatchObject({
    monitor_sync: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
    monitor_status: { readOnlyHint: true },
    database_reset: { destructiveHint: true },
    config_set: { readOnlyHint: false, destructiveHint: false },
  });
  // The settings have as many shapes as there are sections.
  const shaped = tools
    .filter(({ name, outputSchema }) => name in samples && outputSchema !== undefined)
    .map(({ name }) => name);
  expect(shaped.sort()).toEqual(
    Object.keys(samples)
      .filter((name) => name !== "config")
      .sort(),
  );
});
