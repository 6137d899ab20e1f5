import { formatDuration, sleep, systemClock } from "../../clock.ts";
import { atAddress } from "../../daemon/front.ts";
import type { DaemonStatus } from "../../daemon/greeting.ts";
import { stopDaemon } from "../../daemon/reach/ask-daemon.ts";
import { reachStatus } from "../../daemon/reach/connect.ts";
import { refuseUnwritable } from "../../daemon/reach/start.ts";
import { DaemonUnreachable } from "../../daemon/reach/unreachable.ts";
import { CommandError, Exit, type ExitCode, RuntimeError, UsageError } from "../../errors.ts";
import { type Home, openHome } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import type { ProjectFlags } from "../../project/project.ts";
import { system } from "../../system/system.ts";
import { isLoadedBefore } from "../own/loaded-before.ts";
import { describeQuestions, questionText } from "../screens/question-list.ts";
import { askInTerminal, clean, type Terminal } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import {
  chooseDaemon,
  type FoundDaemon,
  findDaemons,
  isOwn,
  type OwnDaemon,
  ownAddress,
  startOf,
} from "./find-daemons.ts";
import { printLog } from "./print-log.ts";

interface DaemonCall extends TypedVerb {
  readonly home: Home;
  /** Which daemon is meant, where that was said. */
  readonly pid: number | undefined;
}

export const subverbs = { status, stop, restart, logs: printLog };

/** How much longer than its grace a daemon may take to end. */
const stopLimitMs = 15_000;
const usualGraceSeconds = 25;
/** Whoever waits this long is told for what. */
const patienceMs = 2_000;
const lookMs = 50;

/** `meanwhile daemon …` */
export async function controlDaemon(name: keyof typeof subverbs, typed: TypedVerb): Promise<ExitCode> {
  try {
    return await subverbs[name]({ ...typed, home: openHome(typed.context.env), pid: readPid(name, typed.operands) });
  } catch (error) {
    throw error instanceof DaemonUnreachable
      ? new RuntimeError("HOME_UNUSABLE", error.message, { cause: error })
      : error;
  }
}

function readPid(name: string, [word]: readonly string[]): number | undefined {
  if (word === undefined) return undefined;
  if (!/^[1-9]\d*$/.test(word))
    throw new UsageError(
      `\`daemon ${name}\` takes the pid of a daemon, as \`${thisProgram.name} daemon status\` shows it, not ${word}.`,
    );
  return Number(word);
}

async function status(context: DaemonCall): Promise<ExitCode> {
  const { home, terminal, options } = context;
  const daemons = await findDaemons(home);
  const own = await ownAddress(context);
  const described = daemons.map((daemon) => ({ ...daemon, isThisProject: isOwn(daemon, own, context) }));
  const toJson = ({ key: _key, record, ...daemon }: (typeof described)[number]) => ({
    ...daemon,
    isDraining: record.isDraining === true,
    folder: record.folder,
    wraps: record.wraps,
    flags: record.flags,
  });
  if (options.json === true) terminal.print(`${JSON.stringify({ daemons: described.map(toJson) }, null, 2)}\n`);
  else if (described.length === 0)
    terminal.print(`No daemon runs; the next \`${thisProgram.name} serve\` starts one.\n`);
  else terminal.print(described.map((daemon) => describe(daemon, terminal)).join("\n"));
  return Exit.Ok;
}

function describe(daemon: FoundDaemon & { isThisProject: boolean }, terminal: Terminal): string {
  const { bold, dim, green, red } = terminal.colors;
  const whose = daemon.isThisProject ? "  this project's" : "";
  if (daemon.kind === "refused") return `${red("●")} ${clean(daemon.why)}${whose}\n`;
  if (daemon.kind === "unreachable")
    return `● ${bold(`Daemon ${daemon.pid}`)}  drains, and has no socket; ${thisProgram.name} daemon stop ${daemon.pid} ends it${whose}\n`;
  if (daemon.kind === "silent") {
    const why = daemon.blocked === undefined ? "" : `, ${clean(daemon.blocked)}`;
    return `${red("●")} ${bold(`Daemon ${daemon.pid}`)}  does not answer${why}; ${thisProgram.name} daemon stop --now ends it${whose}\n`;
  }
  const count = (number: number, word: string) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const isDraining = daemon.record.isDraining === true;
  const rows = [
    ...servedBy(daemon),
    ...(isDraining ? [] : [["socket", daemon.socket]]),
    ...(daemon.record.folder === undefined
      ? []
      : [["started", [daemon.record.folder, startOf(daemon.record)].filter(Boolean).join("  ")]]),
    [
      "serves",
      `${count(daemon.connections, "client")}, runs ${daemon.calls > 0 ? `${count(daemon.calls, "call")} and ` : ""}${count(daemon.running, "task")}`,
    ],
    ...(isDraining ? drainRows(questionsOf(daemon)) : []),
  ];
  const mark = daemon.isThisProject && !isDraining ? green("●") : "●";
  const heading = `${mark} ${bold(`Daemon ${daemon.pid}`)}  ${daemon.version}, up ${formatDuration(systemClock.now() - daemon.startedAt)}${isDraining ? ", drains" : ""}`;
  return `${heading}${whose}\n${rows.map(([name = "", text = ""]) => `    ${dim(name.padEnd(10))}${clean(text)}\n`).join("")}`;
}

/** What a draining daemon waits for. */
function drainRows(questions: OpenQuestions): string[][] {
  if (questions.length === 0) return [["drains", "takes no new work, and ends when its work has ended"]];
  return [
    ["drains", "takes no new work, and ends when it has the answer to:"],
    ...questions.map((question) => ["", `${question.taskId.slice(0, 8)}  ${question.tool}  ${questionText(question)}`]),
    ["answer", answerWords()],
  ];
}

/** What it serves: commands, or somebody else's servers. */
function servedBy({ folders, configFile, upstreams = [], record }: Extract<FoundDaemon, { kind: "well" }>): string[][] {
  if (record.wraps !== undefined) return [["wraps", record.wraps.join(", ")]];
  const names = upstreams.map(({ name, state }) => (state === "down" ? `${name} (down)` : name));
  return [
    ["commands", [...folders, ...(configFile === undefined ? [] : [configFile])].join(", ")],
    ...(names.length === 0 ? [] : [["upstreams", names.join(", ")]]),
  ];
}

async function stop(context: DaemonCall): Promise<ExitCode> {
  const { home, options, pid, terminal } = context;
  if (options.all === true && pid !== undefined) throw new UsageError("`daemon stop` takes a pid or --all, not both.");
  const daemons = await findDaemons(home);
  const own = await ownAddress(context);
  const chosen = options.all === true ? daemons : [chooseDaemon(context, daemons, own)];
  const wanted = chosen.filter((daemon) => daemon !== undefined);
  if (wanted.length === 0) {
    const others =
      daemons.length === 0
        ? ""
        : ` ${daemons.length} of other projects or settings run${daemons.length === 1 ? "s" : ""}; --all ends them too.`;
    throw new CommandError(`No daemon of this project runs.${others}`);
  }
  if (!(await mayLoseQuestions(context, wanted))) return Exit.Cancelled;
  const agreed = tasksOf(wanted.flatMap(questionsOf));
  // Other work may have begun while the person decided.
  const now = agreed.size === 0 ? wanted : await findDaemons(home);
  for (const { pid: wantedPid } of wanted) {
    const daemon = now.find((other) => other.pid === wantedPid);
    if (daemon === undefined) terminal.say(`${terminal.colors.green("✓")} Daemon ${wantedPid} has ended\n`);
    else await (await tellToStop(context, daemon, { agreed })).ended();
  }
  const draining = daemons.filter((daemon) => daemon.record.isDraining === true && !wanted.includes(daemon));
  if (pid === undefined)
    for (const daemon of draining.filter((one) => isOwn(one, own, context))) terminal.say(describeDraining(daemon));
  return Exit.Ok;
}

/** Names a draining daemon that a stop has left alone, and how to end it. */
function describeDraining(daemon: FoundDaemon): string {
  const count = tasksOf(questionsOf(daemon)).size;
  const rest = count === 0 ? "" : `; ${count} task${count === 1 ? " waits" : "s wait"} for an answer`;
  return `  Daemon ${daemon.pid} still drains${rest}. To end it: ${thisProgram.name} daemon stop ${daemon.pid}\n`;
}

const answerWords = () => `${thisProgram.name} tasks answer <task>`;

type OpenQuestions = NonNullable<DaemonStatus["questions"]>;

const questionsOf = (daemon: FoundDaemon): OpenQuestions => (daemon.kind === "well" ? (daemon.questions ?? []) : []);

/** The tasks that ask; one may ask several questions. */
const tasksOf = (questions: OpenQuestions) => new Set(questions.map(({ taskId }) => taskId));

/**
 * True if nothing that must not run twice waits for a person, or a person at the terminal agrees to end it. Throws where
 * nobody can be asked.
 */
async function mayLoseQuestions({ terminal, options }: DaemonCall, daemons: readonly FoundDaemon[]): Promise<boolean> {
  const questions = options.now === true ? [] : daemons.flatMap(questionsOf);
  if (questions.length === 0) return true;
  const count = tasksOf(questions).size;
  const tasks = `${count} task${count === 1 ? "" : "s"}`;
  const [wait, end] = count === 1 ? ["waits", "ends"] : ["wait", "end"];
  if (!terminal.canAsk) {
    const all = questions.map(({ tool, taskId, message }) => `${tool} (${taskId}) asks «${message}»`).join("; ");
    throw new CommandError(
      `${tasks} ${wait} for an answer and must not run twice: ${all}. Answer with \`${answerWords()}\`, or add --now: then ${count === 1 ? "it" : "each"} ends as interrupted.`,
    );
  }
  terminal.say(`${terminal.colors.yellow("!")} ${tasks} ${wait} for an answer, and must not run twice:\n`);
  terminal.say(describeQuestions(questions, terminal));
  terminal.say(`  To answer: ${answerWords()}\n`);
  const keep = "keep the daemon running";
  const stopAll = `stop it: ${count === 1 ? "the task" : `the ${tasks}`} ${end} as interrupted`;
  const schema = {
    type: "object",
    properties: { stop: { enum: [keep, stopAll], default: keep } },
    required: ["stop"],
  };
  const answer = await askInTerminal({ message: "Stop the daemon?", isConfirmation: false, schema }, terminal);
  const isMeant = answer.action === "accept" && answer.content.stop === stopAll;
  const pids = daemons.map(({ pid }) => pid);
  if (!isMeant)
    terminal.say(`  ${pids.length === 1 ? `Daemon ${pids} keeps` : `Daemons ${pids.join(", ")} keep`} running\n`);
  return isMeant;
}

/**
 * Tells a daemon to stop; when this resolves, the next one may start. `ended` waits until the process is gone, and says
 * so. With `keepsQuestions` it does not wait for a daemon that has open questions, and lists them. `agreed` are the tasks
 * whose questions a person has agreed to end.
 */
async function tellToStop(
  context: DaemonCall,
  daemon: FoundDaemon,
  { keepsQuestions = false, agreed = new Set() }: { keepsQuestions?: boolean; agreed?: ReadonlySet<string> } = {},
): Promise<{ ended(): Promise<void> }> {
  const { home, options, terminal } = context;
  if (daemon.kind === "refused") throw new CommandError(daemon.why);
  const { pid, key } = daemon;
  if (daemon.kind === "unreachable") return { ended: () => endBySignal(context, pid) };
  const questions = questionsOf(daemon);
  // Where nothing else runs, nothing needs the grace period.
  const isOnlyAsking =
    daemon.kind === "well" &&
    agreed.size > 0 &&
    [...tasksOf(questions)].filter((taskId) => agreed.has(taskId)).length >= daemon.running + daemon.calls;
  const isNow = options.now === true || isOnlyAsking;
  if (daemon.kind === "silent" && !isNow)
    throw new CommandError(`Daemon ${pid} does not answer; --now ends it all the same.`);
  // It listens and does not speak: what it was doing is found and taken up by the next one.
  if (daemon.kind === "silent") context.context.kill(pid);
  const isKept = keepsQuestions && !isNow;
  const told = daemon.kind === "silent" ? undefined : await stopDaemon(home, key, { isNow, keepsQuestions: isKept });
  // Daemons of other versions do not say.
  const { graceSeconds = usualGraceSeconds } = daemon.kind === "silent" || isNow ? { graceSeconds: 0 } : daemon;
  const ended = async () => {
    if (isKept && questions.length > 0) {
      told?.hangUp();
      terminal.say(`  Daemon ${pid} takes no new work, and ends when it has the answer to:\n`);
      terminal.say(describeQuestions(questions, terminal));
      return terminal.say(`  To answer: ${answerWords()}\n`);
    }
    const hasEnded = await waitForEnd(pid, { graceSeconds, terminal });
    // What it runs has asked something since.
    if (!hasEnded && isKept)
      return terminal.say(`  Daemon ${pid} takes no new work, and ends when its last question is answered\n`);
    if (!hasEnded) throw new CommandError(`Daemon ${pid} was told to stop and still runs; see ${home.daemonLog}.`);
    const waiting = (await told?.left) ?? 0;
    const rest = waiting === 0 ? "" : `; ${waiting} task${waiting === 1 ? " waits" : "s wait"} for the next daemon`;
    const lost =
      !isNow || questions.length === 0
        ? ""
        : `; ${questions.length} open question${questions.length === 1 ? "" : "s"} ended with it`;
    terminal.say(`${terminal.colors.green("✓")} Daemon ${pid} has ended${rest}${lost}\n`);
  };
  return { ended };
}

/** Stops a draining daemon that has no socket: SIGTERM gives its work the grace period, `--now` kills it. */
async function endBySignal({ home, options, terminal, context }: DaemonCall, pid: number): Promise<void> {
  if (options.now === true) context.kill(pid);
  else system.askToEnd(pid);
  const graceSeconds = options.now === true ? 0 : usualGraceSeconds;
  if (!(await waitForEnd(pid, { graceSeconds, terminal })))
    throw new CommandError(`Daemon ${pid} was told to stop and still runs; see ${home.daemonLog}.`);
  terminal.say(`${terminal.colors.green("✓")} Daemon ${pid} has ended\n`);
}

/** False if it still runs well after its grace period. */
async function waitForEnd(
  pid: number,
  { graceSeconds, terminal }: { graceSeconds: number; terminal: Terminal },
): Promise<boolean> {
  const begin = systemClock.monotonic();
  let isTold = false;
  while (system.isAlive(pid)) {
    const waitedMs = systemClock.monotonic() - begin;
    if (waitedMs > graceSeconds * 1000 + stopLimitMs) return false;
    if (!isTold && waitedMs > patienceMs && graceSeconds > 0) {
      isTold = true;
      terminal.say(`  Daemon ${pid} runs what must not be run twice, for up to ${graceSeconds} s (graceSeconds)\n`);
    }
    await sleep(systemClock, lookMs);
  }
  return true;
}

async function restart(context: DaemonCall): Promise<ExitCode> {
  const { home, terminal } = context;
  const own = await ownAddress(context);
  const running = servingOf(chooseDaemon(context, await findDaemons(home), own), context);
  // To start the first one is to run the project's code, which is for those who serve it.
  if (running === undefined && (own === undefined || !isLoadedBefore(context.context, context.flags)))
    throw new CommandError(
      `No daemon of this project runs, and its files have not been loaded as they are now; the next \`${thisProgram.name} serve\` does both.`,
    );
  if (running?.record.wraps !== undefined) return await restartWrap(context, running, running.record.wraps);
  const flags = running === undefined ? context.flags : flagsAgain(running, own, context);
  // Who could not be followed by another is not told to stop.
  refuseUnwritable(home);
  const told = running === undefined ? undefined : await tellToStop(context, running, { keepsQuestions: true });
  const started = await atAddress(flags, reachStatus, { place: context.context });
  if (started === undefined) throw new CommandError(`The new daemon does not answer; see ${home.daemonLog}.`);
  terminal.say(`${terminal.colors.green("✓")} Daemon ${started.pid} serves ${started.folders.map(clean).join(", ")}\n`);
  await told?.ended();
  return Exit.Ok;
}

/** The daemon to restart: a draining one was restarted or stopped already, and is refused where its pid was typed. */
function servingOf(daemon: FoundDaemon | undefined, { pid }: DaemonCall): FoundDaemon | undefined {
  if (daemon?.record.isDraining !== true) return daemon;
  if (pid === undefined) return undefined;
  throw new CommandError(
    `Daemon ${pid} takes no new work already; \`${thisProgram.name} daemon restart\` without its pid starts the next one, \`${thisProgram.name} daemon stop ${pid}\` ends it.`,
  );
}

/** What it wraps was said to its clients alone: each starts the next one when it has something to say. */
async function restartWrap(context: DaemonCall, running: FoundDaemon, wraps: readonly string[]): Promise<ExitCode> {
  await (await tellToStop(context, running, { keepsQuestions: true })).ended();
  context.terminal.say(`  Its clients start the next daemon of ${wraps.map(clean).join(", ")} when they need it\n`);
  return Exit.Ok;
}

/** What the next daemon is started with: as this one was, where that is not what `serve` would do here by itself. */
function flagsAgain(
  { key, pid, record }: FoundDaemon,
  own: OwnDaemon | undefined,
  { flags, context }: DaemonCall,
): ProjectFlags {
  if (own !== undefined && (key === own.key || record.project === own.project)) return flags;
  if (record.folder !== context.cwd)
    throw new CommandError(`Daemon ${pid} was started in ${record.folder ?? "another folder"}; restart it from there.`);
  return record.flags ?? flags;
}
