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
import { type OutFile, readOut } from "../screens/result-files.ts";
import { shownId } from "../screens/task-id.ts";
import type { Terminal } from "../terminal.ts";
import type { VerbCall } from "../verb.ts";
import { startDetachedWorker } from "./detached-worker.ts";
import { followTask } from "./follow-task.ts";

/** `--async` and `--detach`: creates a task, and prints nothing before the task is stored. */
export async function runAsTask(
  found: CatalogEntry,
  typed: TypedCommand,
  { terminal, context, flags }: Pick<VerbCall, "terminal" | "context" | "flags">,
): Promise<ExitCode> {
  const settings = await loadSettings({ cwd: context.cwd, env: context.env, flags });
  const entry = { ...found, toolName: servedName(found, settings.toolPrefix) };
  const out = readOut(typed.out, terminal, typed.quiet);
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
    if (interrupted !== undefined && !typed.quiet) {
      const note = interruptedNote(interrupted, tasks.engine.now());
      const shown = note.replace(interrupted.taskId, shownId(interrupted.taskId, terminal.isLive));
      terminal.say(`${terminal.colors.yellow("!")} ${shown}\n`);
    }
    // A process of its own runs the task from the start, so that this terminal may be closed at any time.
    const revive = (current: Task) => {
      if (current.status === "queued") startDetachedWorker(context, settings, flags);
    };
    if (typed.asTask === "follow") return await follow(task, { typed, terminal, tasks, revive, out });
    revive(task);
    if (typed.yes && entry.command.confirm !== false) await confirm(task, tasks);
    return detach(task, terminal, typed.quiet);
  } finally {
    await tasks.close();
  }
}

async function follow(task: Task, { typed, terminal, tasks, revive, out }: Following): Promise<ExitCode> {
  if (!typed.quiet) terminal.say(`${terminal.colors.dim(`  Task ${shownId(task.taskId, terminal.isLive)}`)}\n`);
  tasks.sweeper.start();
  try {
    const format = typed.json ? "json" : typed.yaml ? "yaml" : "plain";
    return await followTask(task, {
      engine: tasks.engine,
      terminal,
      isQuiet: typed.quiet,
      format,
      out,
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
  /** Starts a worker if the task is queued. */
  readonly revive: (task: Task) => void;
  /** The file for images and files of the result. */
  readonly out: OutFile | undefined;
}

/** `--yes` of a task: waits for its `confirm` question, or its end, and accepts the question. */
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

function detach({ taskId }: Task, terminal: Terminal, isQuiet: boolean): ExitCode {
  const watchWords = `${thisProgram.name} tasks watch ${shownId(taskId, terminal.isLive)}`;
  if (!isQuiet) terminal.say(`${terminal.colors.green("✓")} Runs on without you: ${watchWords}\n`);
  terminal.print(`${shownId(taskId, terminal.isDataShown)}\n`);
  return Exit.Ok;
}

function ageOf(task: Task): string {
  return formatDuration(Math.max(0, systemClock.now() - task.createdAt));
}
