import type { FollowOptions, Progress, TaskState } from "../../client/client.ts";
import { Detach } from "../../client/detach.ts";
import { sleep, systemClock } from "../../clock.ts";
import { ownCommand } from "../../diagnose/diagnose-command.ts";
import { nameOf } from "../../diagnose/diagnosis-target.ts";
import type { Report } from "../../diagnose/report/report.ts";
import { CommandError, TimedOut } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { openTasks } from "../../runtime/open-tasks.ts";
import { loadSettings } from "../../settings/settings.ts";
import { type EndedTask, isTerminal, type Task } from "../../task/task.ts";
import type { Tasks } from "../../task/tasks.ts";
import { leftAlone } from "../follow-work.ts";
import { startDetachedWorker } from "../own/detached-worker.ts";
import type { ProcessContext } from "../process-context.ts";
import { followRemote } from "../remote/follow-remote.ts";
import { quoteWord } from "../remote/server-target.ts";
import { clean, type Terminal } from "../terminal.ts";
import type { TypedDiagnosis } from "./read-diagnosis.ts";

/**
 * A diagnosis as a task: durable before anything is printed, done by a process of its own, and taken up again by its
 * id.
 */

const defaultPollMs = 1_000;

interface StartOptions {
  readonly terminal: Terminal;
  readonly context: ProcessContext;
  readonly ttlMs: number | undefined;
  readonly pollIntervalMs: number | undefined;
  readonly isDetached: boolean;
}

/** Starts a diagnosis; undefined when it is left to itself. */
export async function startDiagnosis(typed: TypedDiagnosis, options: StartOptions): Promise<Report | undefined> {
  const { terminal, ttlMs, isDetached } = options;
  const entry = ownCommand(typed.tools.length === 0 ? "diagnose" : "diagnose_tools");
  if (entry === undefined) throw new Error("diagnose has no command of its own");
  return await withTasks(options.context, async (tasks, revive) => {
    const { target, tools, suites, isFull, budgetMs, memoryMb, isDeterministic } = typed;
    const input = {
      target,
      ...(tools.length > 0 && { tools }),
      ...(suites !== undefined && { suites }),
      ...(isFull && { full: true }),
      ...(budgetMs !== undefined && { budgetSeconds: budgetMs / 1000 }),
      ...(memoryMb !== undefined && { memoryMb }),
      ...(isDeterministic && { deterministic: true }),
      // For whoever takes it up again.
      ...(options.pollIntervalMs !== undefined && { pollIntervalMs: options.pollIntervalMs }),
    };
    const reason = `asked for with --${isDetached ? "detach" : "async"}`;
    const origin = { door: "terminal", folder: terminal.folder } as const;
    const asked = { entry, input, caller: tasks.localKey, origin, name: "diagnose", reason };
    const { task } = await tasks.engine.create({ ...asked, ...(ttlMs !== undefined && { ttlMs }) });
    if (!isDetached)
      return await follow(task, tasks, { ...options, revive, endpoint: nameOf(target), isQuiet: typed.isQuiet });
    revive(task);
    if (!typed.isQuiet) terminal.say(`${terminal.colors.green("✓")} Runs on without you: ${wayBack(task.taskId)}\n`);
    terminal.print(`${task.taskId}\n`);
    return undefined;
  });
}

interface TakeUpOptions {
  readonly terminal: Terminal;
  readonly context: ProcessContext;
  readonly isQuiet: boolean;
  readonly pollIntervalMs: number | undefined;
}

/** Takes up a diagnosis by its id, whoever started it. */
export async function followDiagnosis(taskId: string, options: TakeUpOptions): Promise<Report | undefined> {
  return await withTasks(options.context, async (tasks, revive) => {
    const task = await tasks.engine.get(tasks.localKey, taskId);
    if (!/^diagnose(_tools)?$/.test(task.command))
      throw new CommandError(
        `The task ${clean(taskId)} is no diagnosis but ${task.command}; ${thisProgram.name} tasks result ${clean(taskId)} prints what it gave.`,
      );
    const { target, pollIntervalMs } = task.input as {
      readonly target: TypedDiagnosis["target"];
      readonly pollIntervalMs?: number;
    };
    const { terminal } = options;
    if (!options.isQuiet)
      terminal.say(`${terminal.colors.cyan("›")} Taking up a diagnosis of ${clean(nameOf(target))}\n`);
    return await follow(task, tasks, {
      ...options,
      pollIntervalMs: options.pollIntervalMs ?? pollIntervalMs,
      ttlMs: task.ttlMs,
      revive,
      endpoint: undefined,
    });
  });
}

async function withTasks<T>(
  context: ProcessContext,
  work: (tasks: Tasks, revive: (task: Task) => void) => Promise<T>,
): Promise<T> {
  // Nothing of the folder we are in is needed, and nothing of it is run, unless it is what is diagnosed.
  const flags = { scope: "pack" } as const;
  const settings = await loadSettings({ cwd: context.cwd, env: context.env, flags });
  const tasks = await openTasks(settings, { seesAllProjects: true });
  tasks.sweeper.start();
  try {
    // The work is done by a process of its own from the first moment, so that this terminal may be closed at any other.
    return await work(tasks, (task) => {
      if (task.status === "queued" && task.project === settings.project) startDetachedWorker(context, settings, flags);
    });
  } finally {
    tasks.sweeper.stop();
    await tasks.close();
  }
}

interface FollowedDiagnosis {
  readonly terminal: Terminal;
  readonly isQuiet: boolean;
  readonly ttlMs: number | undefined;
  readonly pollIntervalMs: number | undefined;
  /** Undefined where the story was told before. */
  readonly endpoint: string | undefined;
  readonly revive: (task: Task) => void;
}

async function follow(
  task: Task,
  tasks: Tasks,
  { terminal, isQuiet, ttlMs, pollIntervalMs, endpoint, revive }: FollowedDiagnosis,
): Promise<Report | undefined> {
  const ended = await followRemote(
    {
      terminal,
      isQuiet,
      canDetach: true,
      wayBack,
      wayToAnswer: wayBack,
      ...(endpoint === undefined
        ? { task: toState(task, pollIntervalMs ?? defaultPollMs) }
        : { story: { endpoint, ttlMs: ttlMs ?? task.ttlMs, pollIntervalMs: pollIntervalMs ?? defaultPollMs } }),
    },
    (options) => poll(task, tasks, { ...options, revive, pollMs: pollIntervalMs ?? defaultPollMs }),
  );
  if (ended === leftAlone) return undefined;
  const { outcome } = ended;
  if (outcome.ending === "completed") return outcome.data as Report;
  if (outcome.ending === "failed" && outcome.cause === "timeout") throw new TimedOut(0);
  throw new CommandError(outcome.message);
}

/** Looks at the task again and again, and at once when it ends. */
async function poll(
  task: Task,
  { engine }: Tasks,
  options: FollowOptions & { revive: (task: Task) => void; pollMs: number },
): Promise<EndedTask> {
  const { signal, onTask, onPoll, onProgress, revive, pollMs } = options;
  const ended = engine.wait(task.caller, task.taskId, { ...(signal !== undefined && { signal }), onTask: revive });
  ended.catch(() => undefined);
  try {
    let current = task;
    for (;;) {
      onTask?.(toState(current, pollMs));
      if (current.progress !== undefined) onProgress?.(toProgress(current.progress));
      if (isTerminal(current)) return current as EndedTask;
      await Promise.race([ended, sleep(systemClock, pollMs, signal)]);
      onPoll?.();
      current = await engine.get(task.caller, task.taskId);
    }
  } catch (error) {
    if (signal?.aborted === true && !(signal.reason instanceof Detach)) await engine.cancel(task.caller, task.taskId);
    throw error;
  }
}

function toState(task: Task, pollIntervalMs: number): TaskState {
  const status = task.status === "queued" ? "working" : task.status;
  return {
    taskId: task.taskId,
    status,
    ...(!isTerminal(task) && task.progress?.message !== undefined && { statusMessage: task.progress.message }),
    createdAt: task.createdAt,
    ttlMs: task.ttlMs,
    pollIntervalMs,
  };
}

function toProgress({ value, total, message }: NonNullable<Task["progress"]>): Progress {
  return { done: value, ...(total !== undefined && { total }), ...(message !== undefined && { message }) };
}

function wayBack(taskId: string): string {
  return `${thisProgram.name} diagnose --task ${quoteWord(clean(taskId))}`;
}
