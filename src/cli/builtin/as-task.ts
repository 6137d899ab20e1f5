import { formatDuration, systemClock } from "../../clock.ts";
import type { CatalogEntry } from "../../command/catalog.ts";
import { loadSettings, type Settings } from "../../config.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { silentLog } from "../../log.ts";
import type { Task } from "../../task/task.ts";
import { openTasks, type Tasks } from "../../tasks.ts";
import { followTask, localCaller } from "../follow.ts";
import type { GlobalFlags } from "../main.ts";
import { readInputFile } from "../run.ts";
import type { Terminal } from "../terminal.ts";
import type { Typed } from "../usage.ts";
import { startDetachedWorker } from "./detached.ts";

/** `--async` and `--detach`: the run is durable before anything is printed. */
export async function runAsTask(entry: CatalogEntry, typed: Typed, terminal: Terminal, flags: GlobalFlags): Promise<ExitCode> {
  const settings = await loadSettings({ cwd: process.cwd(), env: process.env, flags });
  const input = { ...(await readInputFile(typed.inputFile, terminal)), ...typed.input };
  const tasks = openTasks(settings, silentLog);
  try {
    const { task, isJoined } = await tasks.engine.create({
      entry,
      input,
      caller: localCaller,
      reason: `asked for with --${typed.asTask === "detach" ? "detach" : "async"}`,
      isNew: typed.isNew,
      ...(typed.ttl !== undefined && { ttlMs: Number(typed.ttl) }),
    });
    if (isJoined && !typed.quiet) terminal.say(`${terminal.colors.yellow("!")} Joined the run started ${ageOf(task)} ago; --new starts another.\n`);
    if (typed.asTask === "detach") return detach(task, settings, terminal, flags, typed.quiet);
    return await follow(task, { entry, typed, terminal, tasks, leaveBehind: () => startDetachedWorker(settings, flags) });
  } finally {
    await tasks.close();
  }
}

interface Following {
  readonly entry: CatalogEntry;
  readonly typed: Typed;
  readonly terminal: Terminal;
  readonly tasks: Tasks;
  /** Starts a process that goes on with what we leave. */
  readonly leaveBehind: () => void;
}

async function follow(task: Task, { entry, typed, terminal, tasks, leaveBehind }: Following): Promise<ExitCode> {
  // A run that was joined has a worker already; should that one die, ours takes over.
  const worker = tasks.createWorker((name) => (name === entry.toolName ? entry : undefined), { taskId: task.taskId });
  worker.start();
  tasks.sweeper.start();
  if (!typed.quiet) terminal.say(`${terminal.colors.dim(`  Task ${task.taskId}`)}\n`);
  const format = typed.json ? "json" : typed.yaml ? "yaml" : "plain";
  const code = await followTask(task, { engine: tasks.engine, terminal, isQuiet: typed.quiet, format, isConfirmed: typed.yes });
  tasks.sweeper.stop();
  const isLeft = worker.running > 0;
  await worker.stop(0);
  if (isLeft) leaveBehind();
  return code;
}

function detach(task: Task, settings: Settings, terminal: Terminal, flags: GlobalFlags, isQuiet: boolean): ExitCode {
  startDetachedWorker(settings, flags);
  if (!isQuiet) terminal.say(`${terminal.colors.green("✓")} Runs on without you: meanwhile tasks watch ${task.taskId}\n`);
  terminal.print(`${task.taskId}\n`);
  return Exit.Ok;
}

function ageOf(task: Task): string {
  return formatDuration(Math.max(0, systemClock.now() - task.createdAt));
}
