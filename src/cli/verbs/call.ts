import type { Command as Program } from "commander";
import type { CallOptions, Client, TaskHandle, Tool } from "../../client/client.ts";
import { orAborted } from "../../client/connection/or-aborted.ts";
import { systemClock } from "../../clock.ts";
import { closest } from "../../command/suggest.ts";
import { CommandError, Exit, type ExitCode, UsageError } from "../../errors.ts";
import { readArguments, readJsonArguments } from "../remote/call-arguments.ts";
import { printToolResult, type ResultOptions } from "../remote/call-result.ts";
import { followRemote, leftAlone, type RemoteOptions } from "../remote/follow-remote.ts";
import { printHelp } from "../screens/layout.ts";
import type { GlobalFlags, VerbCall } from "../main.ts";
import { readInputFile } from "../run-in-terminal.ts";
import { describeTarget, quoteWord, readTarget, type Target, toCommand } from "../remote/server-target.ts";
import { clean, type Terminal } from "../terminal.ts";
import { beforeDashes } from "../command-usage.ts";
import { parseVerb } from "../verb.ts";
import {
  answerWords,
  type Connected,
  declareReach,
  type Reach,
  taskWords,
  toolsWords,
  toReach,
  withClient,
} from "../remote/connect-target.ts";

const description = `Call a tool of any MCP server, and follow it to its result.

The target is one of
  https://host/mcp     a URL
  unix:<path>, *.sock  a Unix socket
  "node server.js"     a command line in one word; no shell reads it
  .                    this project's own server
Behind -- it is the server's command line, and the first word is the tool.`;

const examples = `
Examples:
  $ meanwhile call . report_build quarter=Q3 format=pdf
  $ meanwhile call https://example.org/mcp crawl site=example.org --token-env TOKEN --async
  $ meanwhile call echo message=hi -- npx -y @modelcontextprotocol/server-everything

Exit codes: 0 done or left alone, 1 the tool or the server said no, 2 wrong words,
124 timed out, 130 cancelled.
`;

export async function run(call: VerbCall): Promise<ExitCode> {
  const own = beforeDashes(call.words);
  const behind = call.words.slice(own.length + 1);
  const parsed = parseVerb("call", description, own, declare);
  if ("help" in parsed) {
    printHelp(`${parsed.help}${examples}`, call.terminal);
    return Exit.Ok;
  }
  const typed = await readTyped(parsed.options, parsed.operands, {
    behind: own.length === call.words.length ? undefined : behind,
    flags: call.flags,
    terminal: call.terminal,
  });
  const { reach, isQuiet, timeoutMs } = typed;
  return await withClient({ reach, terminal: call.terminal, isQuiet, timeoutMs }, async (connected) => {
    const tool = findTool(await orAborted(connected.client.listTools(), connected.deadline), typed);
    const input = readArguments(typed.pairs, tool.inputSchema, typed.given);
    return await callTool(connected, { typed, tool, input, terminal: call.terminal });
  });
}

function declare(program: Program): void {
  program
    .argument("[words...]")
    .usage(
      "<target> <tool> [key=value …] [options]\n       meanwhile call <tool> [key=value …] [options] -- <command> [argument …]",
    );
  program.option("--args <json>", "the arguments as one JSON object, sent as they are");
  program.option("--input <file>", "read the arguments from a JSON file, or - for standard input");
  program.option("--json", "print the result as JSON");
  program.option("--yaml", "print the result as YAML");
  program.option("--quiet", "print nothing but the result");
  program.option("--async", "ask for a task, follow it, and tell its story");
  program.option("--detach", "ask for a task, print its id and leave");
  program.option("--wait", "wait for the result, which is the default");
  program.option("--task-ttl <ms>", "as a task: how long its result shall be kept");
  program.option("--poll-interval <ms>", "as a task: how often to look, until the server says how often");
  program.option("--timeout <seconds>", "cancel after this long, with exit code 124");
  program.option("--new", "start another run even if an equal one is live");
  program.option("--idempotency-key <key>", "one key, one run: a repeated call gets the first one's result");
  declareReach(program);
}

interface TypedCall {
  readonly reach: Reach;
  readonly tool: string;
  readonly pairs: readonly string[];
  readonly given: Readonly<Record<string, unknown>>;
  readonly format: ResultOptions["format"];
  readonly isQuiet: boolean;
  readonly asTask: "follow" | "detach" | undefined;
  readonly timeoutMs: number | undefined;
  readonly options: Omit<CallOptions, "detach" | "timeoutMs">;
}

interface Surroundings {
  /** The words behind `--`, where there is one. */
  readonly behind: readonly string[] | undefined;
  readonly flags: GlobalFlags;
  readonly terminal: Terminal;
}

/** Everything that can be wrong with the words is wrong before a server is started or asked. */
async function readTyped(
  options: Record<string, unknown>,
  operands: readonly string[],
  { behind, flags, terminal }: Surroundings,
): Promise<TypedCall> {
  const { target, tool, pairs } = readOperands(operands, behind);
  const wrong = pairs.find((pair) => !/^[^=]+=/.test(pair));
  if (wrong !== undefined) throw new UsageError(`"${clean(wrong)}" is no argument; write it as key=value.`);
  if (options.detach === true && options.wait === true)
    throw new UsageError("--detach and --wait exclude each other; --detach leaves at once.");
  if (options.detach === true && options.async === true)
    throw new UsageError("--detach and --async exclude each other; --async stays and follows the task.");
  if (options.json === true && options.yaml === true) throw new UsageError("--json and --yaml exclude each other.");
  const ttlMs = readWhole(options.taskTtl, "--task-ttl");
  const pollIntervalMs = readWhole(options.pollInterval, "--poll-interval");
  const timeoutMs = readSeconds(options.timeout);
  const key = options.idempotencyKey as string | undefined;
  if (key === "") throw new UsageError("--idempotency-key is empty; give any text that names this one run.");
  const reach = toReach(target, options, flags);
  const file = await readInputFile(options.input as string | undefined, terminal);
  return {
    reach,
    tool,
    pairs,
    given: { ...file, ...(typeof options.args === "string" && readJsonArguments(options.args)) },
    format: options.json === true ? "json" : options.yaml === true ? "yaml" : "plain",
    isQuiet: options.quiet === true,
    timeoutMs,
    asTask: options.detach === true ? "detach" : options.async === true ? "follow" : undefined,
    options: {
      ...((options.async === true || options.detach === true) && { asTask: true }),
      ...(ttlMs !== undefined && { ttlMs }),
      ...(pollIntervalMs !== undefined && { pollIntervalMs }),
      ...(options.new === true && { isNew: true }),
      ...(key !== undefined && { idempotencyKey: key }),
    },
  };
}

function readOperands(
  operands: readonly string[],
  behind: readonly string[] | undefined,
): { target: Target; tool: string; pairs: readonly string[] } {
  if (behind !== undefined) {
    const [tool, ...pairs] = operands;
    if (tool === undefined)
      throw new UsageError("Say which tool to call: meanwhile call <tool> [key=value …] -- <command> [argument …].");
    return { target: toCommand(behind), tool, pairs };
  }
  const [target, tool, ...pairs] = operands;
  if (target === undefined)
    throw new UsageError("Say which server to call, and which tool: meanwhile call <target> <tool> [key=value …].");
  const read = readTarget(target);
  if (tool === undefined)
    throw new UsageError(`Say which tool to call; meanwhile tools ${quoteWord(describeTarget(read))} lists them.`);
  return { target: read, tool, pairs };
}

function readWhole(text: unknown, flag: string): number | undefined {
  if (typeof text !== "string") return undefined;
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number) || number <= 0)
    throw new UsageError(`${flag} must be a positive whole number of milliseconds, not "${clean(text)}".`);
  return number;
}

function readSeconds(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  const seconds = /^(\d+|\d*\.\d+)$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(seconds) || seconds <= 0)
    throw new UsageError(`--timeout must be a positive number of seconds, not "${clean(text)}".`);
  return Math.ceil(seconds * 1000);
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
  const { reach, options, isQuiet, format } = typed;
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
    name: tool.name,
    durationMs: systemClock.monotonic() - startedAt,
  });
}

/** A server without tasks may still hand out a job, to be followed by tools of its own. */
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

/** `--detach`, but the server made no task of it. */
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
