import { expect, test } from "vitest";
import { z } from "zod";
import { sleep } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import type { CommandContext } from "../../src/command/context.ts";
import { knownHosts } from "../../src/host/profiles.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { fetchResult, hostRows, isDone, patiently, type SeenHost, seenHosts } from "../helpers/seen-hosts.ts";
import { openServer } from "../helpers/server.ts";
import { handleOf } from "../helpers/wire.ts";

const tool = "work_twenty_minutes";
const minutes = 60_000;
const runMs = 20 * minutes;
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

test.each(hostRows)(
  "a 20-minute command as %s: a result or a handle before its limit, and the result is then fetched in few turns",
  async (_title, host) => {
    const { clock, client, starts, startedAt } = await open(host);
    const first = await patiently(host, clock, client, tool);
    expect(isDone(first), "no call is kept open for twenty minutes").toBe(false);
    const answers = [first];
    const result = await fetchResult(host, clock, client, first, (answer) => answers.push(answer));
    expect(result.structuredContent).toMatchObject({ success: true, data: { minutes: 20 } });
    expect(starts()).toBe(1);
    expect(clock.now() - startedAt(), "it is there soon after the end").toBeLessThan(runMs + minutes);
    if (host.capabilities !== undefined || !(host.name in turnsOf)) return;
    expect(answers.length, "calls").toBeLessThanOrEqual(turnsOf[host.name as keyof typeof turnsOf]);
    for (const { content } of answers.slice(0, -1))
      expect(textOf(content).length, textOf(content)).toBeLessThanOrEqual(maxCharacters);
  },
);

test.each(hostRows.filter(([, host]) => host.capabilities === undefined && host.asksForTasks !== true))(
  "task_result as %s, asked to wait for an hour: an answer before its limit",
  async (_title, host) => {
    const { clock, client } = await open(host);
    const { job_id } = handleOf(await patiently(host, clock, client, tool));
    const result = await patiently(host, clock, client, "task_result", { job_id, wait_seconds: 3600 });
    expect(isDone(result) || handleOf(result).job_id === job_id).toBe(true);
  },
);

test.each(hostRows.filter(([, host]) => host.isExtended === true && host.capabilities === undefined))(
  "a command that has reported its total and goes on, as %s: still an answer before its limit",
  async (_title, host) => {
    const { clock, client } = await open(host, (task) => task.progress({ percentage: 100, message: "Nearly done" }));
    const result = await fetchResult(host, clock, client, await patiently(host, clock, client, tool));
    expect(result.structuredContent).toMatchObject({ success: true, data: { minutes: 20 } });
  },
);

test("every host we know by name is among them", () => {
  const names = seenHosts.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(knownHosts.map(({ name }) => name)));
});

const textOf = (content: unknown): string => (content as { text: string }[]).map(({ text }) => text).join("");

/** A server in this process whose time we move, and a client that is this host. */
async function open(host: SeenHost, first: (task: CommandContext) => void = () => undefined) {
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
  const server = await openServer({ in: "memory", commands: { [tool]: twentyMinutes }, clock });
  const client = await server.client(host, { over: host.door, hasNoStream: true });
  return { clock, client, starts: () => starts, startedAt: () => startedAt };
}
