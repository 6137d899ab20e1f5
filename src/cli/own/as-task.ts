import { formatDuration, systemClock } from "../../clock.ts";
import type { CatalogEntry } from "../../command/catalog.ts";
import { servedName } from "../../command/names.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { openTasks } from "../../runtime/open-tasks.ts";
import { loadSettings } from "../../settings/settings.ts";
import { interruptedNote } from "../../task/call-request.ts";
import { isTerminal, openQuestions, type Task } from "../../task/task.ts";
import type { Tasks } from "../../task/tasks.ts";
import type { TypedCommand } from "../command-usage.ts";
import { readInput } from "../run-in-terminal.ts";
import type { Terminal } from "../terminal.ts";
import type { VerbCall } from "../verb.ts";
import { startDetachedWorker } from "./detached-worker.ts";
import { followTask } from "./follow-task.ts";

/** `--async` and `--detach`: the run is durable before anything is printed. */
export async function runAsTask(
  found: CatalogEntry,
  typed: TypedCommand,
  { terminal, context, flags }: Pick<VerbCall, "terminal" | "context" | "flags">,
): Promise<ExitCode> {
  const settings = await loadSettings({ cwd: context.cwd, env: context.env, flags });
  const entry = { ...found, toolName: servedName(found, settings.toolPrefix) };
  const input = await readInput(entry, typed, terminal);
  const tasks = await openTasks(settings);
  try {
    const { task, isJoined, interrupted } = await tasks.engine.create({
      entry,
      input,
      caller: tasks.localKey,
      origin: { door: "terminal", folder: terminal.folder },
      name: entry.path.join(" "),
      reason: `asked for with --${typed.asTask === "detach" ? "detach" : "async"}`,
      isNew: typed.isNew,
      ...(typed.ttl !== undefined && { ttlMs: Number(typed.ttl) }),
    });
    if (isJoined && !typed.quiet)
      terminal.say(`${terminal.colors.yellow("!")} Joined the run started ${ageOf(task)} ago; --new starts another.\n`);
    if (interrupted !== undefined && !typed.quiet)
      terminal.say(`${terminal.colors.yellow("!")} ${interruptedNote(interrupted, tasks.engine.now())}\n`);
    // The work is done by a process of its own from the first moment, so that this terminal may be closed at any other.
    const revive = (current: Task) => {
      if (current.status === "queued") startDetachedWorker(context, settings, flags);
    };
    if (typed.asTask === "follow") return await follow(task, { typed, terminal, tasks, revive });
    revive(task);
    if (typed.yes && entry.command.confirm !== false) await confirm(task, tasks);
    return detach(task, terminal, typed.quiet);
  } finally {
    await tasks.close();
  }
}

async function follow(task: Task, { typed, terminal, tasks, revive }: Following): Promise<ExitCode> {
  if (!typed.quiet) terminal.say(`${terminal.colors.dim(`  Task ${task.taskId}`)}\n`);
  tasks.sweeper.start();
  try {
    const format = typed.json ? "json" : typed.yaml ? "yaml" : "plain";
    return await followTask(task, {
      engine: tasks.engine,
      terminal,
      isQuiet: typed.quiet,
      format,
      isConfirmed: typed.yes,
      onTask: revive,
    });
  } finally {
    tasks.sweeper.stop();
  }
}

interface Following {
  readonly typed: TypedCommand;
  readonly terminal: Terminal;
  readonly tasks: Tasks;
  /** Starts somebody who runs the task, when nobody does. */
  readonly revive: (task: Task) => void;
}

/** `--yes` holds for a task too: the leave is given as soon as it is asked for. */
async function confirm(task: Task, tasks: Tasks): Promise<void> {
  const isAsking = (current: Task) =>
    isTerminal(current) || openQuestions(current).some((question) => question.isConfirmation);
  const asking = await tasks.engine.wait(task.caller, task.taskId, { until: isAsking });
  const question = openQuestions(asking).find(({ isConfirmation }) => isConfirmation);
  if (question !== undefined && !isTerminal(asking))
    await tasks.engine.answer(task.caller, task.taskId, {
      [question.key]: { action: "accept", content: { confirm: true } },
    });
}

function detach(task: Task, terminal: Terminal, isQuiet: boolean): ExitCode {
  if (!isQuiet)
    terminal.say(`${terminal.colors.green("✓")} Runs on without you: ${thisProgram.name} tasks watch ${task.taskId}\n`);
  terminal.print(`${task.taskId}\n`);
  return Exit.Ok;
}

function ageOf(task: Task): string {
  return formatDuration(Math.max(0, systemClock.now() - task.createdAt));
}
