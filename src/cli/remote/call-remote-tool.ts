import type { Client, TaskHandle, Tool } from "../../client/client.ts";
import { orAborted } from "../../client/connection/or-aborted.ts";
import { systemClock } from "../../clock.ts";
import { closest } from "../../command/suggest.ts";
import { CommandError, Exit, type ExitCode, UsageError } from "../../errors.ts";
import { leftAlone } from "../follow-work.ts";
import { clean, type Terminal } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { readArguments } from "./call-arguments.ts";
import { printToolResult } from "./call-result.ts";
import { readCall, type TypedCall } from "./call-words.ts";
import { answerWords, type Connected, type Reach, taskWords, toolsWords, withClient } from "./connect-target.ts";
import { followRemote, type RemoteOptions } from "./follow-remote.ts";
import { describeTarget, quoteWord } from "./server-target.ts";

/** `meanwhile call`: calls a tool of a server and waits for its result. Returns the exit code. */
export async function callRemoteTool(typed: TypedVerb): Promise<ExitCode> {
  const { terminal } = typed;
  const call = await readCall(typed);
  const { reach, isQuiet, timeoutMs } = call;
  return await withClient({ reach, terminal, isQuiet, timeoutMs }, async (connected) => {
    const tool = findTool(await orAborted(connected.client.listTools(), connected.deadline), call);
    const input = readArguments(call.pairs, tool.inputSchema, call.given);
    return await callTool(connected, { typed: call, tool, input, terminal });
  });
}

function findTool(tools: readonly Tool[], { tool: wanted, reach }: TypedCall): Tool {
  const found = tools.find(({ name }) => name === wanted);
  if (found !== undefined) return found;
  const guess = closest(
    wanted,
    tools.map(({ name }) => name),
  );
  const hint = guess === undefined ? "" : ` did you mean ${clean(guess)}?`;
  throw new UsageError(`There is no tool ${clean(wanted)};${hint} ${toolsWords(reach)} lists them.`);
}

interface Calling {
  readonly typed: TypedCall;
  readonly tool: Tool;
  readonly input: Readonly<Record<string, unknown>>;
  readonly terminal: Terminal;
}

async function callTool(
  { client, lendInterrupts, deadline }: Connected,
  { typed, tool, input, terminal }: Calling,
): Promise<ExitCode> {
  const { reach, options, isQuiet, format, out } = typed;
  const startedAt = systemClock.monotonic();
  const isShortLived = reach.target.kind === "command";
  const remote: RemoteOptions = {
    terminal,
    isQuiet,
    deadline,
    canDetach: !isShortLived,
    wayBack: (taskId) => wayBack(taskId, reach),
    wayToAnswer: (taskId, fields) => answerWords(taskId, fields, reach),
    ...(typed.asTask === "follow" && {
      story: { endpoint: describeTarget(reach.target), ttlMs: options.ttlMs, pollIntervalMs: options.pollIntervalMs },
    }),
  };
  if (typed.asTask === "detach") {
    await refuseWithoutTasks(client);
    if (isShortLived && !isQuiet)
      terminal.say(
        `${terminal.colors.yellow("!")} The server is started for this call only, and a task may end with it; a URL or a socket outlives us.\n`,
      );
    const handle = await lendInterrupts(() =>
      followRemote({ ...remote, isLeaving: true }, (follow) =>
        client.callTool(tool.name, input, { ...options, ...follow, detach: true }),
      ),
    );
    if (handle === leftAlone) return Exit.Ok;
    if (handle.taskId !== undefined) return leave(handle.taskId, typed, terminal);
    return await printDone(handle, { typed, tool, terminal, durationMs: systemClock.monotonic() - startedAt });
  }
  const result = await lendInterrupts(() =>
    followRemote(remote, (follow) => client.callTool(tool.name, input, { ...options, ...follow })),
  );
  if (result === leftAlone) return Exit.Ok;
  return await printToolResult(result, {
    terminal,
    isQuiet,
    format,
    out,
    name: tool.name,
    durationMs: systemClock.monotonic() - startedAt,
  });
}

/** Throws for a server that neither has tasks nor lists `task_result`: nothing could fetch the result later. */
async function refuseWithoutTasks(client: Client): Promise<void> {
  if (client.server.tasks !== "none" || (await client.listTools()).some(({ name }) => /(^|_)task_result$/.test(name)))
    return;
  throw new CommandError("This server has no tasks, so nothing would be left of the call; call it without --detach.");
}

function leave(taskId: string, { isQuiet, reach }: TypedCall, terminal: Terminal): ExitCode {
  if (!isQuiet) terminal.say(`${terminal.colors.green("✓")} Runs on without you: ${wayBack(taskId, reach)}\n`);
  terminal.print(`${clean(taskId)}\n`);
  return Exit.Ok;
}

/** `--detach` of a call that the server answered without a task: prints the result. */
async function printDone(
  handle: TaskHandle,
  { typed, tool, terminal, durationMs }: Omit<Calling, "input"> & { durationMs: number },
): Promise<ExitCode> {
  if (!typed.isQuiet)
    terminal.say(
      `${terminal.colors.yellow("!")} The server answered without making a task of it; this is its result.\n`,
    );
  return await printToolResult(await handle.result(), {
    terminal,
    isQuiet: typed.isQuiet,
    format: typed.format,
    name: tool.name,
    durationMs,
  });
}

function wayBack(taskId: string, reach: Reach): string {
  return taskWords(`result ${quoteWord(clean(taskId))} --wait`, reach);
}
