import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { sleep } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import type { CommandContext } from "../../src/command/context.ts";
import { knownHosts } from "../../src/host/profiles.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { moving, openInMemory, turns } from "../helpers/in-memory.ts";
import { handleOf, type Message, type Result, resultOf, WireClient } from "../helpers/wire.ts";

// What each host was seen to do; written down here once more, so that a wrong profile is noticed.

interface Host {
  readonly title: string;
  readonly name: string;
  readonly revision: string;
  readonly door: "stdio" | "http";
  /** Whether its calls carry a progress token. */
  readonly sendsToken: boolean;
  /** A call dies after so many seconds of silence; undefined: it waits. */
  readonly limit: number | undefined;
  /** Progress starts that time anew. */
  readonly isExtended?: boolean;
  readonly capabilities?: object;
  /** Calls with `params.task`. */
  readonly asksForTasks?: boolean;
  /** Sends notifications/cancelled 70 ms after the answer. */
  readonly cancelsLate?: boolean;
}

const tasks2026 = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const [y24, jun25, nov25, y26] = ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"] as const;
const atBothDoors = (host: Omit<Host, "door">): Host[] => [
  { ...host, door: "stdio" },
  { ...host, door: "http" },
];
/** Nobody has seen what it sends. */
const withAndWithoutToken = (host: Omit<Host, "door" | "sendsToken">): Host[] => [
  ...atBothDoors({ ...host, sendsToken: true }),
  ...atBothDoors({ ...host, sendsToken: false }),
];

const hosts: readonly Host[] = [
  {
    title: "Claude Code, interactive",
    name: "claude-code",
    revision: y26,
    door: "stdio",
    sendsToken: true,
    limit: 1800,
    isExtended: true,
    capabilities: tasks2026,
  },
  {
    title: "Claude Code, interactive",
    name: "claude-code",
    revision: y26,
    door: "http",
    sendsToken: true,
    limit: 300,
    isExtended: true,
    capabilities: tasks2026,
  },
  {
    title: "Claude Code -p",
    name: "claude-code",
    revision: y26,
    door: "stdio",
    sendsToken: true,
    limit: 1800,
    isExtended: true,
  },
  {
    title: "Claude Code -p",
    name: "claude-code",
    revision: y26,
    door: "http",
    sendsToken: true,
    limit: 300,
    isExtended: true,
  },
  ...atBothDoors({
    title: "Copilot CLI",
    name: "copilot-cli",
    revision: y26,
    sendsToken: true,
    limit: 180,
    isExtended: true,
  }),
  ...atBothDoors({ title: "Codex CLI", name: "codex-mcp-client", revision: jun25, sendsToken: true, limit: 300 }),
  ...atBothDoors({ title: "Gemini CLI", name: "gemini-cli-mcp-client", revision: jun25, sendsToken: true, limit: 600 }),
  ...atBothDoors({
    title: "opencode",
    name: "opencode",
    revision: nov25,
    sendsToken: true,
    limit: 60,
    isExtended: true,
    cancelsLate: true,
  }),
  ...atBothDoors({ title: "Kilo CLI", name: "kilo", revision: nov25, sendsToken: true, limit: 60, cancelsLate: true }),
  ...atBothDoors({ title: "Cline CLI", name: "@cline/core", revision: y24, sendsToken: false, limit: 60 }),
  ...atBothDoors({ title: "Continue CLI", name: "continue-cli-client", revision: nov25, sendsToken: false, limit: 60 }),
  ...withAndWithoutToken({ title: "Factory droid", name: "factory-cli", revision: nov25, limit: 60 }),
  ...withAndWithoutToken({ title: "Qwen Code", name: "qwen-cli-mcp-client-probe", revision: nov25, limit: 60 }),
  ...withAndWithoutToken({ title: "Claude Desktop", name: "claude-ai", revision: jun25, limit: 60 }),
  ...atBothDoors({
    title: "VS Code, a plain call",
    name: "Visual Studio Code",
    revision: nov25,
    sendsToken: true,
    limit: undefined,
  }),
  ...atBothDoors({
    title: "VS Code, a task",
    name: "Visual Studio Code",
    revision: nov25,
    sendsToken: true,
    limit: undefined,
    asksForTasks: true,
  }),
  ...atBothDoors({ title: "Cursor", name: "cursor-vscode", revision: jun25, sendsToken: true, limit: 60 }),
  ...atBothDoors({
    title: "Amazon Q",
    name: "whatever it calls itself",
    revision: jun25,
    sendsToken: false,
    limit: 60,
  }),
  ...withAndWithoutToken({ title: "Antigravity CLI", name: "whatever it calls itself", revision: jun25, limit: 180 }),
  ...withAndWithoutToken({ title: "an SDK client's defaults", name: "my-client", revision: nov25, limit: 60 }),
  ...withAndWithoutToken({
    title: "an SDK client's defaults, 2026-07-28",
    name: "my-client",
    revision: y26,
    limit: 60,
  }),
  ...atBothDoors({
    title: "an SDK client with resetTimeoutOnProgress",
    name: "my-client",
    revision: nov25,
    sendsToken: true,
    limit: 60,
    isExtended: true,
  }),
];

const tool = "work_twenty_minutes";
const minutes = 60_000;
const runMs = 20 * minutes;
const stepMs = 10_000;
const rows = hosts.map(
  (host) => [`${host.title} over ${host.door}${host.sendsToken ? "" : " without a progress token"}`, host] as const,
);

test.each(rows)(
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

test.each(rows.filter(([, { capabilities, asksForTasks }]) => capabilities === undefined && asksForTasks !== true))(
  "task_result as %s, asked to wait for an hour: an answer before its limit",
  async (_title, host) => {
    const { clock, client } = await setUp(host);
    const { job_id } = handleOf(await patiently(host, clock, client, tool));
    const result = await patiently(host, clock, client, "task_result", { job_id, wait_seconds: 3600 });
    expect(isDone(result) || handleOf(result).job_id === job_id).toBe(true);
  },
);

test.each(rows.filter(([, { isExtended, capabilities }]) => isExtended === true && capabilities === undefined))(
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

test.each(rows.filter(([, { name, capabilities }]) => name in turnsOf && capabilities === undefined))(
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
  const names = hosts.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(knownHosts.map(({ name }) => name)));
});

/** A call, waited for as this host would: it throws when the host would have cut it. */
async function patiently(
  host: Host,
  clock: FakeClock,
  client: WireClient,
  called: string,
  input: object = {},
): Promise<Result> {
  const { limit, isExtended = false } = host;
  const progressToken = host.sendsToken ? `token ${clock.now()}` : undefined;
  let heardAt = clock.now();
  const values: number[] = [];
  const stopListening = client.onMessage(({ method, params }) => {
    if (method !== "notifications/progress" || params?.progressToken !== progressToken) return;
    values.push(params?.progress as number);
    if (isExtended) heardAt = clock.now();
  });
  const { id, answer } = client.startCall(called, input, {
    ...(progressToken !== undefined && { meta: { progressToken } }),
    ...(host.asksForTasks === true && called === tool && { task: {} }),
  });
  let answered: Message | undefined;
  void answer.then((message) => (answered = message));
  for (;;) {
    await turns();
    const silence = (clock.now() - heardAt) / 1000;
    if (limit !== undefined && silence > limit)
      throw new Error(`${host.title} cut ${called} after ${silence} s; its limit is ${limit} s`);
    if (answered !== undefined) break;
    clock.advance(stepMs);
  }
  stopListening();
  expect(values, "progress rises").toEqual([...new Set(values)].sort((a, b) => a - b));
  if (host.cancelsLate === true) {
    clock.advance(70);
    client.cancel(id);
    await turns();
  }
  return resultOf(answered);
}

const textOf = (content: unknown): string => (content as { text: string }[]).map(({ text }) => text).join("");
const isDone = ({ structuredContent }: Result): boolean => structuredContent?.data.minutes !== undefined;

/** Does what the answer says, until the result is there. */
async function fetchResult(
  host: Host,
  clock: FakeClock,
  client: WireClient,
  first: Result,
  onAnswer: (result: Result) => void = () => undefined,
): Promise<Result> {
  if (first.resultType === "task") return await pollModern(clock, client, first.taskId as string);
  if (first.task !== undefined) return await pollCore(clock, client, first.task.taskId);
  const asked = new Set<string>();
  let result = first;
  while (!isDone(result)) {
    const { tool: next, arguments: input } = handleOf(result).next_action;
    expect(next).toBe("task_result");
    const words = JSON.stringify(input);
    // Gemini CLI and Cline give up at the fifth call with the same arguments.
    expect(asked, "the arguments of next_action differ each time").not.toContain(words);
    asked.add(words);
    result = await patiently(host, clock, client, next, input);
    onAnswer(result);
  }
  return result;
}

async function pollModern(clock: FakeClock, client: WireClient, taskId: string): Promise<Result> {
  for (;;) {
    const task = resultOf(await moving(clock, client.request("tasks/get", { taskId })));
    if (task.status !== "working") return task.result as Result;
    clock.advance(stepMs);
  }
}

async function pollCore(clock: FakeClock, client: WireClient, taskId: string): Promise<Result> {
  while (resultOf(await moving(clock, client.request("tasks/get", { taskId }))).status === "working")
    clock.advance(stepMs);
  return resultOf(await moving(clock, client.request("tasks/result", { taskId })));
}

/** A server in this process whose time we move, and a client that is this host. */
async function setUp(host: Host, first: (task: CommandContext) => void = () => undefined) {
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
