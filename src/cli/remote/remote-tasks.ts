import type { Client, TaskHandle, TaskState, TaskStatus } from "../../client/client.ts";
import { formatDuration, systemClock, toTimestamp } from "../../clock.ts";
import { CommandError, Exit, type ExitCode, UsageError } from "../../errors.ts";
import { leftAlone } from "../follow-work.ts";
import { readAnswer, readDecline, readStatuses, verbOf } from "../own/read-answer.ts";
import { printError } from "../screens/json-error.ts";
import { toColumns, widthFor } from "../screens/layout.ts";
import { sayStillOpen } from "../screens/open-question.ts";
import { formatData, type OutputFormat } from "../screens/output.ts";
import { type OutFile, readOut } from "../screens/result-files.ts";
import { shownId } from "../screens/task-id.ts";
import { clean, type Terminal } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { printToolResult } from "./call-result.ts";
import { answerWords, type Connected, type Reach, taskWords, toReach, withClient } from "./connect-target.ts";
import { followRemote } from "./follow-remote.ts";
import { quoteWord, readTarget } from "./server-target.ts";

type RemoteCall = Pick<TypedVerb, "options" | "operands" | "flags" | "terminal" | "context">;

interface Context extends RemoteCall, Connected {
  readonly reach: Reach;
}

const subverbs: Readonly<Record<string, (context: Context) => Promise<ExitCode>>> = {
  list,
  show,
  result,
  watch,
  cancel,
  answer,
};
const statuses = ["working", "input_required", "completed", "failed", "cancelled"] as const;

/** `meanwhile tasks … --target`: the same commands, asked of another server. */
export async function runRemoteTasks(name: string, call: RemoteCall): Promise<ExitCode> {
  const reach = toReach({ ...call, target: readTarget(String(call.options.target)) });
  const subverb = Object.hasOwn(subverbs, name) ? subverbs[name] : undefined;
  if (name === "progress")
    throw new UsageError(
      "tasks progress is for your own calls; another server tells the client that holds the token, and nobody else.",
    );
  if (name === "retry")
    throw new UsageError("tasks retry is for your own tasks; another server decides itself when a task runs again.");
  if (subverb === undefined)
    throw new UsageError(`tasks ${name} is for your own tasks; another server forgets tasks when their time is over.`);
  refuseOptions(name, call);
  return await withClient({ reach, terminal: call.terminal }, (connected) => subverb({ ...call, ...connected, reach }));
}

/** What another server cannot be asked is refused before it is asked anything. */
function refuseOptions(name: string, { options, operands }: RemoteCall): void {
  if (name === "watch" && operands.length === 0)
    throw new UsageError("tasks watch --target follows one task; give its id.");
  if (options.limit !== undefined)
    throw new UsageError(
      "--limit is for your own tasks; another server decides how many it lists at once, and --cursor goes on.",
    );
  if (options.live === true && options.status !== undefined)
    throw new UsageError("--live and --status exclude each other; --live is every task that has not ended.");
  if (typeof options.status === "string") readStatuses(options.status, statuses);
}

async function list({ client, terminal, options, reach }: Context): Promise<ExitCode> {
  const page = await client.listTasks(typeof options.cursor === "string" ? { cursor: options.cursor } : {});
  const wanted = typeof options.status === "string" ? readStatuses(options.status, statuses) : statuses;
  const tasks = page.tasks.filter((task) => wanted.includes(task.status) && !(options.live === true && isEnded(task)));
  if (options.json === true)
    terminal.print(`${JSON.stringify({ tasks: tasks.map(describeState), nextCursor: page.nextCursor }, null, 2)}\n`);
  else if (tasks.length === 0) terminal.print(options.live === true ? "Nothing runs.\n" : "No tasks.\n");
  else terminal.print(stateTable(tasks, terminal));
  if (page.nextCursor !== undefined && options.json !== true)
    terminal.say(`  More: ${taskWords(`list --cursor ${quoteWord(clean(page.nextCursor))}`, reach)}\n`);
  return Exit.Ok;
}

function stateTable(tasks: readonly TaskState[], terminal: Terminal): string {
  const now = systemClock.now();
  const ageOf = ({ createdAt }: TaskState) =>
    createdAt === undefined ? "-" : formatDuration(Math.max(0, now - createdAt)).replace(/\.\d s/, " s");
  const rows = tasks.map((task) => [
    clean(shownId(task.taskId, terminal.isDataShown)),
    task.status,
    ageOf(task),
    clean(task.statusMessage ?? ""),
  ]);
  return toColumns([["Task", "Status", "Age", "Latest"], ...rows], widthFor(terminal));
}

async function show(context: Context): Promise<ExitCode> {
  const { state } = await find(context);
  context.terminal.print(
    await formatData(
      { data: describeState(state) },
      context.options.json === true ? "json" : "yaml",
      widthFor(context.terminal),
    ),
  );
  return Exit.Ok;
}

async function result(context: Context): Promise<ExitCode> {
  const { options, terminal } = context;
  const out = readOut(options.out, terminal);
  const { handle, state } = await find(context);
  if (!isEnded(state) && options.wait !== true)
    throw new CommandError(`It has not ended yet (${state.status}); --wait waits for it.`);
  const format = options.json === true ? "json" : "plain";
  return await printEnd(context, { handle, state, isQuiet: true, format, out });
}

async function watch(context: Context): Promise<ExitCode> {
  const { handle, state } = await find(context);
  return await printEnd(context, { handle, state, isQuiet: false, format: "plain", isWatched: true });
}

interface Followed extends Found {
  readonly isQuiet: boolean;
  readonly format: OutputFormat;
  readonly out?: OutFile | undefined;
  readonly isWatched?: boolean;
}

async function printEnd(
  { terminal, reach, lendInterrupts }: Context,
  { handle, state, isQuiet, format, out, isWatched = false }: Followed,
): Promise<ExitCode> {
  if (state.status === "cancelled") return await printCancelled(state, { terminal, format });
  const remote = {
    terminal,
    isQuiet,
    task: state,
    isWatching: isWatched,
    canDetach: reach.target.kind !== "command",
    wayBack: (taskId: string) => taskWords(`watch ${quoteWord(clean(taskId))}`, reach),
    wayToAnswer: (taskId: string, fields: readonly string[]) => answerWords(taskId, fields, reach),
  };
  const wait = () => followRemote(remote, (follow) => handle.result(follow));
  // Who watches a task is told how to come back to it; who waits for its result just leaves.
  const given = isWatched ? await lendInterrupts(wait) : await wait();
  if (given === leftAlone) return Exit.Ok;
  return await printToolResult(given, { terminal, isQuiet, format, out, name: `Task ${state.taskId}` });
}

async function printCancelled(
  { statusMessage: message = "It was cancelled." }: TaskState,
  { terminal, format }: { terminal: Terminal; format: OutputFormat },
): Promise<ExitCode> {
  terminal.say(`${terminal.colors.red("✗")} ${clean(message)}\n`);
  await printError({ message, exitCode: Exit.Cancelled }, { terminal, format });
  return Exit.Cancelled;
}

async function cancel(context: Context): Promise<ExitCode> {
  const { handle, state } = await find(context);
  if (isEnded(state)) throw new CommandError(`It has ended already (${state.status}), so there is nothing to cancel.`);
  await handle.cancel();
  context.terminal.say(`${context.terminal.colors.green("✓")} Cancelled ${clean(state.taskId)}\n`);
  return Exit.Ok;
}

async function answer(context: Context): Promise<ExitCode> {
  const { terminal, operands, options } = context;
  const { handle, state } = await find(context);
  const [question] = isEnded(state) ? [] : (state.questions ?? []);
  if (question === undefined) throw new CommandError("It asks nothing right now.");
  const words = operands.slice(1);
  const given =
    readDecline(options, words) ?? (await readAnswer({ ...question, isConfirmation: false }, words, terminal));
  if (given.action === "cancel") {
    const answerWith = answerWords(state.taskId, [], context.reach);
    sayStillOpen(context, { until: question.until, answerWords: answerWith });
    return Exit.Cancelled;
  }
  await handle.answer({ [question.key]: given });
  terminal.say(`${terminal.colors.green("✓")} ${verbOf(given)} «${clean(question.message)}»\n`);
  return Exit.Ok;
}

interface Found {
  readonly handle: TaskHandle;
  readonly state: TaskState;
}

/** A task by its id, or by the beginning of one where the server lists its tasks. */
async function find({ client, operands }: Context): Promise<Found> {
  const handle = client.task(await completeId(client, operands[0] ?? ""));
  return { handle, state: await handle.state() };
}

async function completeId(client: Client, wanted: string): Promise<string> {
  if (wanted.length >= 36 || !/^[0-9a-f-]{4,}$/.test(wanted)) return wanted;
  const fits = await idsFrom(client, wanted).catch((): string[] => []);
  if (fits.includes(wanted)) return wanted;
  if (fits.length > 1) throw new UsageError(`${fits.length} tasks begin with ${wanted}; type more of the id.`);
  return fits[0] ?? wanted;
}

/** A server decides how long its pages are, and may have very many. */
const maxPages = 100;

/** The IDs that begin like this, of all tasks that the server lists. */
async function idsFrom(client: Client, start: string): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < maxPages; pages++) {
    const page = await client.listTasks(cursor === undefined ? {} : { cursor });
    found.push(...page.tasks.map(({ taskId }) => taskId).filter((taskId) => taskId.startsWith(start)));
    cursor = page.nextCursor;
    if (cursor === undefined) break;
  }
  return found;
}

function isEnded({ status }: { readonly status: TaskStatus }): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

function describeState({ createdAt, lastUpdatedAt, questions, ...state }: TaskState): Record<string, unknown> {
  return {
    ...state,
    ...(questions !== undefined &&
      questions.length > 0 && { questions: questions.map(({ key, message }) => ({ key, message })) }),
    ...(createdAt !== undefined && { createdAt: toTimestamp(createdAt) }),
    ...(lastUpdatedAt !== undefined && { updatedAt: toTimestamp(lastUpdatedAt) }),
  };
}
