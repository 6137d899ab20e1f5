import path from "node:path";
import { expect, test } from "vitest";
import { backWays, ways } from "../../fixtures/stdout/commands/print/_ways.ts";
import { startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";

const commands = path.resolve(import.meta.dirname, "../../fixtures/stdout/commands");

test("every stdout line of the stdio server is a valid message while a command calls console.log and spawns a child that prints", async () => {
  await expectCleanStdout(Object.keys(ways));
});

// A thread of a command's own has its own copies of Node's functions, and they are not ours to replace: what it writes
// to descriptor 1 by number still lands there. A server whose commands run behind a daemon does not have this gap.
test.fails("known gap: threads of a command that write to file descriptor 1 by number", async () => {
  await expectCleanStdout(Object.keys(backWays));
});

/** Calls a command that prints in these ways, all at once, and checks where the texts and the answers went. */
async function expectCleanStdout(names: readonly string[]): Promise<void> {
  const { child, stdout, stderr } = startMeanwhile(["serve", "--in-process", "--no-bundled", "--commands", commands]);
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const lines = () => stdout().split("\n").slice(0, -1);
  const answers = () => lines().filter((line) => line.includes('"id":'));

  const params = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "scenario", version: "1.0.0" },
  };
  send({ id: "hello", method: "initialize", params });
  await waitFor(() => answers().length === 1, stderr);
  send({ method: "notifications/initialized" });
  for (const way of names)
    send({
      id: way,
      method: "tools/call",
      params: { name: "print_text", arguments: { way, text: `printed by ${way}` } },
    });
  await waitFor(
    () => answers().length === names.length + 1,
    () => `not everything was answered: ${stdout()}`,
  );

  expect(stdout().endsWith("\n")).toBe(true);
  expect(lines().filter((line) => !isMessage(line))).toEqual([]);
  const messages = answers().map((line) => JSON.parse(line) as { id: string; result?: { isError?: boolean } });
  expect(messages.map(({ id }) => id).sort()).toEqual(["hello", ...names].sort());
  expect(messages.filter(({ result }) => result === undefined || result.isError === true)).toEqual([]);
  const texts = ["printed while it was loaded", ...names.map((way) => `printed by ${way}`)];
  await waitFor(
    () => texts.every((text) => stderr().includes(text)),
    () => `not on stderr: ${texts.filter((text) => !stderr().includes(text)).join("; ")}`,
  );
}

function isMessage(line: string): boolean {
  try {
    const { jsonrpc, id, method, result, error } = JSON.parse(line) as Record<string, unknown>;
    const isAnswer = id !== undefined && (result === undefined) !== (error === undefined);
    return jsonrpc === "2.0" && (typeof method === "string" || isAnswer);
  } catch {
    return false;
  }
}
