import { type Clock, sleep, systemClock } from "../../clock.ts";
import { isForPerson } from "../../command/foreign-question.ts";
import { CommandError, Exit, type ExitCode, isStoreError, UsageError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { openTasks } from "../../runtime/open-tasks.ts";
import { readSettings, type Settings } from "../../settings/settings.ts";
import { lastProgress } from "../../task/status-line.ts";
import {
  differingNames,
  type EnvironmentMarks,
  isTerminal,
  liveStatuses,
  openQuestions,
  type Task,
  type TaskStatus,
} from "../../task/task.ts";
import type { Tasks } from "../../task/tasks.ts";
import { listTokens, progressOfToken } from "../../task/token-progress.ts";
import { isUnclaimable, quoteNames } from "../../task/transitions.ts";
import { printData } from "../run-in-terminal.ts";
import { widthFor } from "../screens/layout.ts";
import { sayStillOpen } from "../screens/open-question.ts";
import { formatData } from "../screens/output.ts";
import { readOut } from "../screens/result-files.ts";
import { shownId } from "../screens/task-id.ts";
import { describeTask, liveTable, taskLines, taskTable, tokenTable } from "../screens/tasks-view.ts";
import { clean, type Terminal } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { startDetachedWorker } from "./detached-worker.ts";
import { followTask, printResult } from "./follow-task.ts";
import { isLoadedBefore } from "./loaded-before.ts";
import { describeEmptyProject, toProjectName } from "./project-filter.ts";
import { readAnswer, readDecline, readStatuses, verbOf } from "./read-answer.ts";

interface OwnTasks extends TypedVerb {
  readonly tasks: Tasks;
  readonly clock: Clock;
  /** The values of variables in this terminal, for tasks of this project and of the bundled commands. */
  readonly environmentOf: (task: Task) => EnvironmentMarks;
  /** Called with a task that is being waited for: when nobody runs it, somebody is started. */
  readonly revive: (task: Task) => void;
}

export const subverbs = { list, show, result, progress, watch, cancel, retry, answer, prune };

/** `meanwhile tasks …`: what is done with the tasks of whoever sits at this machine. */
export async function runOwnTasks(name: keyof typeof subverbs, call: TypedVerb): Promise<ExitCode> {
  const { cwd, env } = call.context;
  const { settings } = readSettings({ cwd, env, flags: call.flags });
  const pack = readSettings({ cwd, env, flags: packAlone }).settings;
  const tasks = await openTasks(settings, { seesAllProjects: true });
  const revive = toRevive({ call, settings, pack });
  try {
    await tasks.sweeper.interruptDead();
    await tasks.sweeper.markUnclaimable().catch(passStoreErrors);
    const environmentOf = ({ project }: Task) =>
      project === pack.project ? pack.environment : project === settings.project ? settings.environment : {};
    return await subverbs[name]({
      ...{ ...call, tasks },
      ...{ clock: systemClock, environmentOf, revive },
    });
  } finally {
    tasks.sweeper.stop();
    await tasks.close();
  }
}

/** A database that is full, or read-only, can still be read. */
function passStoreErrors(error: unknown): void {
  if (!isStoreError(error)) throw error;
}

const packAlone = { scope: "bundled" } as const;

interface Reviving {
  readonly call: TypedVerb;
  readonly settings: Settings;
  /** Those of the bundled commands alone. */
  readonly pack: Settings;
}

/**
 * Starts a worker for a task that nobody runs; one of this project's only when that runs no code that was not run here
 * before.
 */
function toRevive({ call, settings, pack }: Reviving): (task: Task) => void {
  let isTold = false;
  const tell = (why: string) => {
    const { terminal } = call;
    if (!isTold) terminal.say(`${terminal.colors.yellow("!")} ${why}\n`);
    isTold = true;
  };
  return ({ taskId, status, project, environment }) => {
    if (status !== "queued") return;
    if (project === pack.project) return startDetachedWorker(call.context, pack, packAlone);
    if (project !== settings.project) return;
    const others = differingNames(environment, settings.environment);
    if (others.length > 0)
      return tell(
        `It was asked for with another value of ${others.join(", ")}, so nobody is started to run it here. A session with that value runs it; \`${thisProgram.name} tasks retry ${shownId(taskId, call.terminal.isLive)}\` runs it with the values of this terminal.`,
      );
    if (isLoadedBefore(call.context, call.flags)) return startDetachedWorker(call.context, settings, call.flags);
    tell(
      `Its project has changed since it was last loaded, so nobody is started to run it; \`${thisProgram.name} serve\` runs it.`,
    );
  };
}

async function list(context: OwnTasks): Promise<ExitCode> {
  const { tasks, terminal, options } = context;
  const isLive = options.live === true;
  if (isLive && options.status !== undefined)
    throw new UsageError("--live and --status exclude each other; --live is every task that has not ended.");
  const statuses = typeof options.status === "string" ? toStatuses(options.status) : isLive ? liveStatuses : undefined;
  const limit = options.limit === undefined ? 20 : Number(options.limit);
  const text = typeof options.project === "string" ? options.project : undefined;
  const project = text === undefined ? undefined : toProjectName(text, context);
  const page = await tasks.engine.list(tasks.localKey, {
    limit,
    ...(statuses && { statuses }),
    withCalls: isLive,
    ...(project !== undefined && { project }),
    ...(typeof options.cursor === "string" && { cursor: options.cursor }),
  });
  if (options.json === true)
    terminal.print(
      `${JSON.stringify({ tasks: page.tasks.map(describeTask), nextCursor: page.nextCursor }, null, 2)}\n`,
    );
  else if (page.tasks.length === 0) terminal.print(isLive ? "Nothing runs.\n" : "No tasks.\n");
  else {
    const options = { width: widthFor(terminal), hasShortIds: terminal.isDataShown };
    terminal.print((isLive ? liveTable : taskTable)(page.tasks, tasks.engine.now(), options));
  }
  if (page.tasks.length === 0 && text !== undefined && project !== undefined && options.cursor === undefined) {
    const why = await describeEmptyProject(tasks, { text, project });
    if (why !== undefined) terminal.say(`${terminal.colors.yellow("!")} ${why}\n`);
  }
  if (page.nextCursor !== undefined && options.json !== true)
    terminal.say(`  More: ${thisProgram.name} tasks list --cursor ${page.nextCursor}\n`);
  return Exit.Ok;
}

function toStatuses(text: string): TaskStatus[] {
  return readStatuses(text, [...liveStatuses, "completed", "failed", "cancelled"]);
}

/** A task by its ID, or by at least four characters of its beginning that no other task of this user has. */
async function find({ tasks, operands }: OwnTasks): Promise<Task> {
  const wanted = operands[0] ?? "";
  if (wanted.length < 36 && /^[0-9a-f-]{4,}$/.test(wanted)) {
    const fits = await idsFrom(tasks, wanted);
    if (fits.length > 1) throw new UsageError(`${fits.length} tasks begin with ${wanted}; type more of the id.`);
    if (fits[0] !== undefined) return await tasks.engine.get(tasks.localKey, fits[0]);
  }
  return await tasks.engine.get(tasks.localKey, wanted);
}

/** The IDs that begin like this, of all tasks that `tasks list` shows page by page. */
async function idsFrom({ engine, localKey }: Tasks, start: string): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await engine.list(localKey, { withCalls: true, limit: 100, ...(cursor !== undefined && { cursor }) });
    found.push(...page.tasks.map(({ taskId }) => taskId).filter((taskId) => taskId.startsWith(start)));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

async function show(context: OwnTasks): Promise<ExitCode> {
  const described = describeTask(await find(context));
  context.terminal.print(
    await formatData({ data: described }, context.options.json === true ? "json" : "yaml", widthFor(context.terminal)),
  );
  return Exit.Ok;
}

async function progress({ tasks, terminal, options, operands }: OwnTasks): Promise<ExitCode> {
  const [token] = operands;
  const format = options.json === true ? "json" : "yaml";
  if (token === undefined) {
    const all = await listTokens(tasks.engine, tasks.localKey, tasks.engine.now());
    if (options.json === true) terminal.print(await formatData({ data: all }, "json"));
    else terminal.print(all.length === 0 ? "Nothing that runs has a progress token.\n" : tokenTable(all));
    return Exit.Ok;
  }
  const answer = await progressOfToken(tasks.engine, tasks.localKey, { token, now: tasks.engine.now() });
  if (!answer.ok)
    throw new CommandError(
      `${answer.message}${answer.error === "timeout" ? "" : ` \`${thisProgram.name} tasks progress\` lists those there are.`}`,
    );
  const { progress: found, others } = answer;
  if (others.length > 0)
    terminal.say(
      `${terminal.colors.yellow("!")} ${others.length + 1} clients have chosen this token; this is the newest call.\n`,
    );
  printData(await formatData({ data: found }, format), terminal);
  return Exit.Ok;
}

async function result(context: OwnTasks): Promise<ExitCode> {
  const { tasks, terminal, options } = context;
  const out = readOut(options.out, terminal);
  const found = await find(context);
  if (options.wait === true) tasks.sweeper.start();
  const task =
    options.wait === true ? await tasks.engine.wait(tasks.localKey, found.taskId, { onTask: context.revive }) : found;
  if (isUnclaimable(task)) throw new CommandError(`It has not ended yet (${task.status}). ${task.statusMessage}`);
  if (!isTerminal(task)) throw new CommandError(`It has not ended yet (${task.status}); --wait waits for it.`);
  return await printResult(task, { terminal, isQuiet: true, format: options.json === true ? "json" : "plain", out });
}

async function cancel(context: OwnTasks): Promise<ExitCode> {
  const task = await find(context);
  const isCancelled = await context.tasks.engine.cancel(
    context.tasks.localKey,
    task.taskId,
    "Cancelled in the terminal.",
  );
  const { green } = context.terminal.colors;
  if (!isCancelled) throw new CommandError(`It has ended already (${task.status}), so there is nothing to cancel.`);
  const last = clean(lastProgress(task));
  context.terminal.say(`${green("✓")} Cancelled ${task.command}${last === "" ? "" : `.${last}`}\n`);
  return Exit.Ok;
}

/**
 * Runs a task with this terminal's values of the variables that it waits for. The values that workers have decide where
 * this terminal has none.
 */
async function retry(context: OwnTasks): Promise<ExitCode> {
  const { tasks, terminal } = context;
  const { green, yellow } = terminal.colors;
  const found = await find(context);
  const present = context.environmentOf(found);
  const asked = Object.entries(found.environment ?? {});
  const kept = asked.flatMap(([name, mark]) => {
    const own = present[name];
    // An empty value counts as one only where it was empty at the start too.
    return own === undefined || (own === "" && mark !== "") ? [] : [[name, own] as const];
  });
  const unset = asked.flatMap(([name]) => (kept.some(([own]) => own === name) ? [] : [name]));
  const changed = asked.flatMap(([name, mark]) =>
    kept.some(([own, mine]) => own === name && mine !== mark) ? [name] : [],
  );
  if (!(await tasks.engine.retry(tasks.localKey, found.taskId, Object.fromEntries(kept)))) {
    const task = await tasks.engine.get(tasks.localKey, found.taskId);
    throw new CommandError(whyNotQueued(task, terminal));
  }
  const values = changed.length === 0 ? "" : ` with the ${quoteNames(changed)} of this terminal`;
  terminal.say(`${green("✓")} Queued ${found.command} again${values}\n`);
  if (unset.length > 0)
    terminal.say(
      `${yellow("!")} ${quoteNames(unset)} ${unset.length === 1 ? "is" : "are"} not set here: the next worker of its project runs it, with its own value.\n`,
    );
  else context.revive(await tasks.engine.get(tasks.localKey, found.taskId));
  return Exit.Ok;
}

function whyNotQueued({ taskId, status, command }: Task, { isLive }: Terminal): string {
  if (status === "working") return "It is running, so there is nothing to retry.";
  if (status === "input_required")
    return `It waits for an answer: \`${thisProgram.name} tasks answer ${shownId(taskId, isLive)}\`.`;
  return `It has ended already (${status}); run ${command} again.`;
}

async function answer(context: OwnTasks): Promise<ExitCode> {
  const { tasks, terminal, operands } = context;
  const task = await find(context);
  const open = isTerminal(task) ? [] : openQuestions(task);
  const question = open.find(isForPerson);
  if (question === undefined)
    throw new CommandError(
      open[0] === undefined
        ? "It asks nothing right now."
        : `It waits for ${clean(open[0].message)}, and for no person.`,
    );
  const words = operands.slice(1);
  const given = readDecline(context.options, words) ?? (await readAnswer(question, words, terminal));
  if (given.action === "cancel") {
    const { until } = question;
    const answerWords = `${thisProgram.name} tasks answer ${shownId(task.taskId, terminal.isLive)}`;
    sayStillOpen(context, { until, answerWords });
    return Exit.Cancelled;
  }
  if (!(await tasks.engine.answer(tasks.localKey, task.taskId, { [question.key]: given })))
    throw new CommandError("Somebody else has answered it by now.");
  context.revive(await tasks.engine.get(tasks.localKey, task.taskId));
  terminal.say(`${terminal.colors.green("✓")} ${verbOf(given)} «${clean(question.message)}»\n`);
  return Exit.Ok;
}

async function prune({ tasks, terminal }: OwnTasks): Promise<ExitCode> {
  const count = await tasks.engine.prune(tasks.localKey);
  terminal.say(`${terminal.colors.green("✓")} Forgot ${count} ended task${count === 1 ? "" : "s"}\n`);
  return Exit.Ok;
}

async function watch(context: OwnTasks): Promise<ExitCode> {
  const { tasks, terminal } = context;
  if (context.operands.length === 0) return await watchAll(context);
  const task = await find(context);
  tasks.sweeper.start();
  return await followTask(task, {
    engine: tasks.engine,
    terminal,
    isQuiet: false,
    format: "plain",
    isConfirmed: false,
    isWatching: true,
    onTask: context.revive,
  });
}

/** Redraws in place on a terminal until Ctrl-C; elsewhere prints one line a change until nothing is live. */
async function watchAll({ tasks, terminal, clock }: OwnTasks): Promise<ExitCode> {
  const stop = new AbortController();
  const stopListening = terminal.onInterrupt(() => stop.abort(new Error("stopped")));
  const seen = new Map<string, number>();
  let drawn = 0;
  try {
    while (!stop.signal.aborted) {
      const { tasks: page } = await tasks.engine.list(tasks.localKey, { limit: 20 });
      if (terminal.isLive) drawn = redraw(page, drawn, terminal, tasks.engine.now());
      else {
        for (const task of page.filter((item) => seen.get(item.taskId) !== item.version))
          terminal.print(
            taskTable([task], tasks.engine.now(), { hasShortIds: terminal.isDataShown })
              .split("\n")
              .slice(1)
              .join("\n"),
          );
        for (const task of page) seen.set(task.taskId, task.version);
        if (page.every(isTerminal)) return Exit.Ok;
      }
      await sleep(clock, 250, stop.signal).catch(() => undefined);
    }
    return Exit.Ok;
  } finally {
    stopListening();
  }
}

function redraw(page: readonly Task[], drawn: number, terminal: Terminal, now: number): number {
  const live = page.filter((task) => !isTerminal(task)).length;
  const heading = `${live} live, ${page.length - live} ended  ${terminal.colors.dim("Ctrl-C leaves")}\n`;
  // One line more than the screen is high would scroll it on every redraw.
  const shown = page.slice(0, Math.max(1, terminal.rows - 3));
  const text = `${heading}${page.length === 0 ? "No tasks.\n" : taskLines(shown, now, terminal.columns)}`;
  if (drawn > 0) terminal.erase(drawn);
  terminal.say(text);
  return text.split("\n").length - 1;
}
