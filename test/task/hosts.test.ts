import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { sleep } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import type { CommandContext } from "../../src/command/context.ts";
import { knownHosts } from "../../src/host/profiles.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { moving, openInMemory } from "../helpers/in-memory.ts";
import { fetchResult, hostRows, isDone, patiently, type SeenHost, seenHosts } from "../helpers/seen-hosts.ts";
import { handleOf, type Result, WireClient } from "../helpers/wire.ts";

const tool = "work_twenty_minutes";
const minutes = 60_000;
const runMs = 20 * minutes;
test.each(hostRows)(
  "a 20-minute command as %s: a result or a handle before its limit, and the result is then fetched",
  async (_title, host) => {
    const { clock, client, starts, startedAt } = await setUp(host);
    const first = await patiently(host, clock, client, tool);
    expect(isDone(first), "no call is kept open for twenty minutes").toBe(false);
    const result = await fetchResult(host, clock, client, first);
    expect(result.structuredContent).toMatchObject({ success: true, data: { minutes: 20 } });
    expect(starts()).toBe(1);
    expect(clock.now() - startedAt(), "it is there soon after the end").toBeLessThan(runMs + minutes);
  },
);

test.each(hostRows.filter(([, host]) => host.capabilities === undefined && host.asksForTasks !== true))(
  "task_result as %s, asked to wait for an hour: an answer before its limit",
  async (_title, host) => {
    const { clock, client } = await setUp(host);
    const { job_id } = handleOf(await patiently(host, clock, client, tool));
    const result = await patiently(host, clock, client, "task_result", { job_id, wait_seconds: 3600 });
    expect(isDone(result) || handleOf(result).job_id === job_id).toBe(true);
  },
);

test.each(hostRows.filter(([, host]) => host.isExtended === true && host.capabilities === undefined))(
  "a command that has reported its total and goes on, as %s: still an answer before its limit",
  async (_title, host) => {
    const { clock, client } = await setUp(host, (task) => task.progress({ percentage: 100, message: "Nearly done" }));
    const result = await fetchResult(host, clock, client, await patiently(host, clock, client, tool));
    expect(result.structuredContent).toMatchObject({ success: true, data: { minutes: 20 } });
  },
);

/**
 * What a model pays for one silent 20-minute command: its calls, and the characters of text it is given before the
 * result.
 */
const turnsOf = {
  "codex-mcp-client": 6,
  opencode: 4,
  "copilot-cli": 4,
  "claude-code": 4,
  "@cline/core": 28,
  "gemini-cli-mcp-client": 4,
};
/** One answer that says "not yet": a sentence and what to do next. */
const maxCharacters = 420;

test.each(hostRows.filter(([, { name, capabilities }]) => name in turnsOf && capabilities === undefined))(
  "a 20-minute command costs a model few turns and few words, as %s",
  async (_title, host) => {
    const { clock, client } = await setUp(host);
    const answers = [await patiently(host, clock, client, tool)];
    await fetchResult(host, clock, client, answers[0] as Result, (result) => answers.push(result));
    expect(answers.length, "calls").toBeLessThanOrEqual(turnsOf[host.name as keyof typeof turnsOf]);
    for (const { content } of answers.slice(0, -1))
      expect(textOf(content).length, textOf(content)).toBeLessThanOrEqual(maxCharacters);
  },
);

test("every host we know by name is among them", () => {
  const names = seenHosts.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(knownHosts.map(({ name }) => name)));
});

const textOf = (content: unknown): string => (content as { text: string }[]).map(({ text }) => text).join("");

/** A server in this process whose time we move, and a client that is this host. */
async function setUp(host: SeenHost, first: (task: CommandContext) => void = () => undefined) {
  const clock = new FakeClock();
  let starts = 0;
  let startedAt = 0;
  const twentyMinutes = defineCommand({
    summary: "Take twenty minutes, and say nothing",
    output: z.object({ minutes: z.number() }),
    async run(_input, task) {
      starts += 1;
      startedAt = clock.now();
      first(task);
      await sleep(clock, runMs, task.signal);
      return { minutes: 20 };
    },
  });
  const server = await openInMemory({ [tool]: twentyMinutes }, clock);
  const client = new WireClient(host.door === "stdio" ? server.openPipe() : await server.openHttp(), host);
  onTestFinished(async () => {
    await moving(clock, client.close());
    await moving(clock, server.close(), 1_000);
  });
  await moving(clock, client.begin());
  return { clock, client, starts: () => starts, startedAt: () => startedAt };
}
