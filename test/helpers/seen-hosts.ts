import { expect } from "vitest";
import type { FakeClock } from "./fake-clock.ts";
import { moving, turns } from "./in-memory.ts";
import { handleOf, type Message, type Result, resultOf, type WireClient } from "./wire.ts";

/** What each host was seen to do; written down here once more, so that a wrong profile is noticed. */

export interface SeenHost {
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

/** A name that is in no table. */
const unknownName = "whatever it calls itself";
const tasks2026 = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const [y24, jun25, nov25, y26] = ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"] as const;
const atBothDoors = (host: Omit<SeenHost, "door">): SeenHost[] => [
  { ...host, door: "stdio" },
  { ...host, door: "http" },
];
/** Nobody has seen what it sends. */
const withAndWithoutToken = (host: Omit<SeenHost, "door" | "sendsToken">): SeenHost[] => [
  ...atBothDoors({ ...host, sendsToken: true }),
  ...atBothDoors({ ...host, sendsToken: false }),
];

export const seenHosts: readonly SeenHost[] = [
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
  ...withAndWithoutToken({ title: "Factory droid", name: "factory-cli", revision: nov25, limit: 30 }),
  ...withAndWithoutToken({ title: "Qwen Code", name: "qwen-cli-mcp-client-probe", revision: nov25, limit: 30 }),
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
  ...atBothDoors({ title: "Cursor", name: "cursor-vscode", revision: jun25, sendsToken: true, limit: 30 }),
  { title: "jcode", name: "jcode", revision: y24, door: "stdio", sendsToken: false, limit: 30 },
  { title: "Jan", name: "Jan Streamable Client", revision: jun25, door: "http", sendsToken: true, limit: 30 },
  ...withAndWithoutToken({ title: "Zed", name: "Zed", revision: jun25, limit: 60 }),
  ...withAndWithoutToken({ title: "DeepSeek Reasonix", name: "reasonix", revision: y24, limit: 60 }),
  ...withAndWithoutToken({
    title: "Copilot for JetBrains",
    name: unknownName,
    revision: jun25,
    limit: 30,
  }),
  ...atBothDoors({
    title: "Amazon Q",
    name: unknownName,
    revision: jun25,
    sendsToken: false,
    limit: 60,
  }),
  ...withAndWithoutToken({ title: "Antigravity CLI", name: unknownName, revision: jun25, limit: 180 }),
  ...withAndWithoutToken({ title: "an SDK client's defaults", name: "mcp", revision: nov25, limit: 60 }),
  ...withAndWithoutToken({
    title: "an SDK client's defaults, 2026-07-28",
    name: "mcp",
    revision: y26,
    limit: 60,
  }),
  ...atBothDoors({
    title: "an SDK client with resetTimeoutOnProgress",
    name: "mcp",
    revision: nov25,
    sendsToken: true,
    limit: 60,
    isExtended: true,
  }),
];

const stepMs = 10_000;

export const hostRows = seenHosts.map(
  (host) => [`${host.title} over ${host.door}${host.sendsToken ? "" : " without a progress token"}`, host] as const,
);

/** A call, waited for as this host would: it throws when the host would have cut it. */
export async function patiently(
  host: SeenHost,
  clock: FakeClock,
  client: WireClient,
  called: string,
  input: object = {},
): Promise<Result> {
  const { limit, isExtended = false } = host;
  // Of 30 s, the limit of an unknown host, 3.75 s are between the handle and the error in its place.
  const waitMs = limit === 30 || host.name === unknownName ? 2_500 : stepMs;
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
    ...(host.asksForTasks === true && !called.startsWith("task_") && { task: {} }),
  });
  let answered: Message | undefined;
  void answer.then((message) => (answered = message));
  for (;;) {
    await turns();
    const silence = (clock.now() - heardAt) / 1000;
    if (limit !== undefined && silence > limit)
      throw new Error(`${host.title} cut ${called} after ${silence} s; its limit is ${limit} s`);
    if (answered !== undefined) break;
    clock.advance(waitMs);
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

/** It is neither a handle nor a task. */
export function isDone({ structuredContent, resultType, task }: Result): boolean {
  return structuredContent?.data?.job_id === undefined && resultType !== "task" && task === undefined;
}

/** Does what the answer says, until the result is there. */
export async function fetchResult(
  host: SeenHost,
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
