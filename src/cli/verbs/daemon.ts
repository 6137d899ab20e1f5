import { watch } from "node:fs";
import { createColors } from "picocolors";
import { formatDuration, sleep, systemClock } from "../../clock.ts";
import { whatBlocks } from "../../daemon/doing.ts";
import type { DaemonStatus } from "../../daemon/greeting.ts";
import { askDaemon, stopDaemon } from "../../daemon/reach/ask.ts";
import { reachStatus } from "../../daemon/reach/connect.ts";
import { type DaemonAddress, refuseUnwritable } from "../../daemon/reach/start.ts";
import { DaemonUnreachable } from "../../daemon/reach/unreachable.ts";
import { type DaemonRecord, readRecords, removeRecord } from "../../daemon/record.ts";
import { CommandError, Exit, type ExitCode, messageOf, RuntimeError, UsageError } from "../../errors.ts";
import { addressOf, atAddress } from "../../daemon/front.ts";
import { type Home, openHome } from "../../paths.ts";
import { system } from "../../system/system.ts";
import { flagWords, type ProjectFlags } from "../../project/project.ts";
import { printHelp } from "../screens/layout.ts";
import { LogTail } from "../screens/log-tail.ts";
import { LogView } from "../screens/log-view.ts";
import type { VerbCall } from "../main.ts";
import { printData } from "../run-in-terminal.ts";
import { quoteWord } from "../remote/server-target.ts";
import { clean, type Terminal } from "../terminal.ts";
import { parseVerb } from "../verb.ts";
import { isLoadedBefore } from "../loaded-before.ts";

interface Context {
  readonly call: VerbCall;
  readonly terminal: Terminal;
  readonly home: Home;
  readonly options: Record<string, unknown>;
  /** Which daemon is meant, where that was said. */
  readonly pid: number | undefined;
}

interface Subverb {
  readonly usage: string;
  readonly summary: string;
  readonly run: (context: Context) => Promise<ExitCode>;
}

const subverbs: Record<string, Subverb> = {
  status: { usage: "status [--json]", summary: "the daemons of this home", run: status },
  stop: {
    usage: "stop [pid] [--all] [--now]",
    summary: "end this project's daemon; what is safe to run again waits for the next one",
    run: stop,
  },
  restart: {
    usage: "restart [pid] [--now]",
    summary: "end it and start another; connected clients stay connected",
    run: restart,
  },
  logs: { usage: "logs [--follow] [--json]", summary: "what the daemons of this home have written", run: logs },
};

/** How much longer than its grace a daemon may take to end. */
const stopLimitMs = 15_000;
const usualGraceSeconds = 25;
/** Whoever waits this long is told for what. */
const patienceMs = 2_000;
const lookMs = 50;

export async function run(call: VerbCall): Promise<ExitCode> {
  const [name = "", ...words] = call.words;
  if (name === "" || name === "--help" || name === "-h") {
    printHelp(help(), call.terminal);
    return Exit.Ok;
  }
  const subverb = Object.hasOwn(subverbs, name) ? subverbs[name] : undefined;
  if (subverb === undefined)
    throw new UsageError(`Unknown command \`daemon ${name}\`; there are ${Object.keys(subverbs).join(", ")}.`);
  const parsed = parseVerb(`daemon ${name}`, subverb.summary, words, (program) => {
    if (name === "status") program.option("--json", "print as JSON");
    if (name === "stop") program.option("--all", "every daemon of this home");
    if (name === "stop" || name === "restart") {
      program.argument("[pid]", "which one, as `daemon status` shows it");
      program.option("--now", "wait for no task: those that must not be run twice end as interrupted");
    }
    if (name === "logs")
      program
        .option("--follow", "go on printing what is written")
        .option("--json", "print the lines as they are in the file: JSON");
  });
  if ("help" in parsed) {
    printHelp(parsed.help, call.terminal);
    return Exit.Ok;
  }
  try {
    return await subverb.run({
      call,
      terminal: call.terminal,
      home: openHome(process.env),
      options: parsed.options,
      pid: readPid(name, parsed.operands),
    });
  } catch (error) {
    throw error instanceof DaemonUnreachable
      ? new RuntimeError("HOME_UNUSABLE", error.message, { cause: error })
      : error;
  }
}

function help(): string {
  const width = Math.max(...Object.values(subverbs).map(({ usage }) => usage.length)) + 2;
  return `Usage: meanwhile daemon <what>\n\n${Object.values(subverbs)
    .map(({ usage, summary }) => `  ${usage.padEnd(width)}${summary}\n`)
    .join("")}`;
}

function readPid(name: string, [word]: readonly string[]): number | undefined {
  if (word === undefined) return undefined;
  if (!/^[1-9]\d*$/.test(word))
    throw new UsageError(
      `\`daemon ${name}\` takes the pid of a daemon, as \`meanwhile daemon status\` shows it, not ${word}.`,
    );
  return Number(word);
}

/** A daemon that has a record: what it tells of itself, or why it does not; and how it was started. */
type Found = { readonly key: string; readonly pid: number; readonly record: DaemonRecord } & (
  | ({ readonly kind: "well" } & DaemonStatus)
  | { readonly kind: "silent"; readonly blocked: string | undefined }
  | { readonly kind: "refused"; readonly why: string }
);

/** Every daemon that is there. The record of one that has crashed is of no more use. */
async function findDaemons(home: Home): Promise<readonly Found[]> {
  const found: Found[] = [];
  for (const [key, record] of recordsOf(home)) {
    const { pid } = record;
    try {
      const reply = await askDaemon(home, key, { meanwhile: "status" });
      if (reply === "silent")
        found.push({ kind: "silent", key, pid, record, blocked: whatBlocks(home, key, pid, systemClock.now()) });
      else if (reply?.meanwhile === "status") {
        const { meanwhile: _word, ...told } = reply;
        found.push({ kind: "well", key, record, ...told });
      } else if (!system.isAlive(pid)) removeRecord(home, key, pid);
    } catch (error) {
      if (!(error instanceof DaemonUnreachable)) throw error;
      found.push({ kind: "refused", key, pid, record, why: error.message });
    }
  }
  return found;
}

function recordsOf(home: Home): ReturnType<typeof readRecords> {
  try {
    return readRecords(home);
  } catch (error) {
    throw new RuntimeError("HOME_UNUSABLE", `Cannot read the home folder ${home.folder}: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

/**
 * What the daemon of this project is found by; undefined where its config cannot be read, which is no reason to say
 * nothing about daemons.
 */
async function ownAddress({ call }: Context): Promise<Own | undefined> {
  try {
    return await addressOf(call.flags, { mayLoad: false });
  } catch (error) {
    if (!(error instanceof DaemonUnreachable)) throw error;
    call.terminal.say(
      `${call.terminal.colors.yellow("!")} Which daemon is this project's is not known: ${error.message}\n`,
    );
    return undefined;
  }
}

type Own = Pick<DaemonAddress, "key" | "project">;

/**
 * Whether a daemon is this project's, whatever it was started with. Flags that are typed name the project themselves;
 * without any, everything counts that was started in this folder.
 */
function isOwn({ key, record }: Found, own: Own | undefined, { flags }: VerbCall): boolean {
  if (own !== undefined && (key === own.key || record.project === own.project)) return true;
  const isTyped = flags.commands !== undefined || flags.bundled !== undefined;
  return !isTyped && record.folder === process.cwd();
}

/**
 * The daemon that is meant: the one that was named, or that `serve` would use here and now, or else the only one of
 * this project.
 */
function chooseDaemon({ call, pid }: Context, daemons: readonly Found[], own: Own | undefined): Found | undefined {
  if (pid !== undefined) {
    const named = daemons.find((daemon) => daemon.pid === pid);
    if (named === undefined)
      throw new CommandError(`No daemon ${pid} runs in this home; \`meanwhile daemon status\` shows those that do.`);
    return named;
  }
  const candidates = daemons.filter((daemon) => isOwn(daemon, own, call));
  const exact = candidates.find(({ key }) => key === own?.key);
  if (exact !== undefined || candidates.length < 2) return exact ?? candidates[0];
  const named = candidates.map((daemon) => `${daemon.pid} (${startOf(daemon.record) || "no flags"})`).join(", ");
  throw new CommandError(
    `${candidates.length} daemons of this project run: ${named}; name one by its pid, as \`meanwhile daemon status\` shows it.`,
  );
}

/** How a daemon was started, as words of a command line. */
function startOf({ flags = {} }: DaemonRecord): string {
  const { scope: _ours, ...typed } = flags;
  return flagWords(typed).map(quoteWord).join(" ");
}

async function status(context: Context): Promise<ExitCode> {
  const { home, terminal, options, call } = context;
  const daemons = await findDaemons(home);
  const own = await ownAddress(context);
  const described = daemons.map((daemon) => ({ ...daemon, isThisProject: isOwn(daemon, own, call) }));
  const toJson = ({ key: _key, record: { folder, flags }, ...daemon }: (typeof described)[number]) => ({
    ...daemon,
    folder,
    flags,
  });
  if (options.json === true) terminal.print(`${JSON.stringify({ daemons: described.map(toJson) }, null, 2)}\n`);
  else if (described.length === 0) terminal.print("No daemon runs; the next `meanwhile serve` starts one.\n");
  else terminal.print(described.map((daemon) => describe(daemon, terminal)).join("\n"));
  return Exit.Ok;
}

function describe(daemon: Found & { isThisProject: boolean }, terminal: Terminal): string {
  const { bold, dim, green, red } = terminal.colors;
  const whose = daemon.isThisProject ? "  this project's" : "";
  if (daemon.kind === "refused") return `${red("●")} ${clean(daemon.why)}${whose}\n`;
  if (daemon.kind === "silent") {
    const why = daemon.blocked === undefined ? "" : `, ${clean(daemon.blocked)}`;
    return `${red("●")} ${bold(`Daemon ${daemon.pid}`)}  does not answer${why}; meanwhile daemon stop --now ends it${whose}\n`;
  }
  const count = (number: number, word: string) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const rows = [
    ["commands", [...daemon.folders, ...(daemon.configFile === undefined ? [] : [daemon.configFile])].join(", ")],
    ["socket", daemon.socket],
    ...(daemon.record.folder === undefined
      ? []
      : [["started", [daemon.record.folder, startOf(daemon.record)].filter(Boolean).join("  ")]]),
    [
      "serves",
      `${count(daemon.connections, "client")}, runs ${daemon.calls > 0 ? `${count(daemon.calls, "call")} and ` : ""}${count(daemon.running, "task")}`,
    ],
  ];
  const mark = daemon.isThisProject ? green("●") : "●";
  const heading = `${mark} ${bold(`Daemon ${daemon.pid}`)}  ${daemon.version}, up ${formatDuration(systemClock.now() - daemon.startedAt)}`;
  return `${heading}${whose}\n${rows.map(([name = "", text = ""]) => `    ${dim(name.padEnd(10))}${clean(text)}\n`).join("")}`;
}

async function stop(context: Context): Promise<ExitCode> {
  const { home, options, pid } = context;
  if (options.all === true && pid !== undefined) throw new UsageError("`daemon stop` takes a pid or --all, not both.");
  const daemons = await findDaemons(home);
  const chosen = options.all === true ? daemons : [chooseDaemon(context, daemons, await ownAddress(context))];
  const wanted = chosen.filter((daemon) => daemon !== undefined);
  if (wanted.length === 0) {
    const others =
      daemons.length === 0
        ? ""
        : ` ${daemons.length} of other projects or settings run${daemons.length === 1 ? "s" : ""}; --all ends them too.`;
    throw new CommandError(`No daemon of this project runs.${others}`);
  }
  for (const daemon of wanted) await (await tellToStop(context, daemon)).ended();
  return Exit.Ok;
}

/**
 * Tells a daemon to stop; when this resolves, the next one may start. `ended` waits until the process is gone, and says
 * so.
 */
async function tellToStop({ home, options, terminal }: Context, daemon: Found): Promise<{ ended(): Promise<void> }> {
  if (daemon.kind === "refused") throw new CommandError(daemon.why);
  const { pid, key } = daemon;
  const isNow = options.now === true;
  if (daemon.kind === "silent" && !isNow)
    throw new CommandError(`Daemon ${pid} does not answer; --now ends it all the same.`);
  // It listens and does not speak: what it was doing is found and taken up by the next one.
  if (daemon.kind === "silent") process.kill(pid, "SIGKILL");
  const { left } = daemon.kind === "silent" ? { left: undefined } : await stopDaemon(home, key, isNow);
  // Daemons of other versions do not say.
  const { graceSeconds = usualGraceSeconds } = daemon.kind === "silent" || isNow ? { graceSeconds: 0 } : daemon;
  const ended = async () => {
    await waitForEnd(pid, { graceSeconds, home, terminal });
    const waiting = (await left) ?? 0;
    const rest = waiting === 0 ? "" : `; ${waiting} task${waiting === 1 ? " waits" : "s wait"} for the next daemon`;
    terminal.say(`${terminal.colors.green("✓")} Daemon ${pid} has ended${rest}\n`);
  };
  return { ended };
}

async function waitForEnd(
  pid: number,
  { graceSeconds, home, terminal }: { graceSeconds: number; home: Home; terminal: Terminal },
): Promise<void> {
  const begin = systemClock.monotonic();
  let isTold = false;
  while (system.isAlive(pid)) {
    const waitedMs = systemClock.monotonic() - begin;
    if (waitedMs > graceSeconds * 1000 + stopLimitMs)
      throw new CommandError(`Daemon ${pid} was told to stop and still runs; see ${home.daemonLog}.`);
    if (!isTold && waitedMs > patienceMs && graceSeconds > 0) {
      isTold = true;
      terminal.say(`  Daemon ${pid} runs what must not be run twice, for up to ${graceSeconds} s (graceSeconds)\n`);
    }
    await sleep(systemClock, lookMs);
  }
}

async function restart(context: Context): Promise<ExitCode> {
  const { home, terminal, call } = context;
  const own = await ownAddress(context);
  const running = chooseDaemon(context, await findDaemons(home), own);
  // To start the first one is to run the project's code, which is for those who serve it.
  if (running === undefined && (own === undefined || !isLoadedBefore(call.flags)))
    throw new CommandError(
      "No daemon of this project runs, and its files have not been loaded as they are now; the next `meanwhile serve` does both.",
    );
  const flags = running === undefined ? call.flags : flagsAgain(running, own, call.flags);
  // Who could not be followed by another is not told to stop.
  refuseUnwritable(home);
  const told = running === undefined ? undefined : await tellToStop(context, running);
  const started = await atAddress(flags, reachStatus);
  if (started === undefined) throw new CommandError(`The new daemon does not answer; see ${home.daemonLog}.`);
  terminal.say(`${terminal.colors.green("✓")} Daemon ${started.pid} serves ${started.folders.map(clean).join(", ")}\n`);
  await told?.ended();
  return Exit.Ok;
}

/** What the next daemon is started with: as this one was, where that is not what `serve` would do here by itself. */
function flagsAgain({ key, pid, record }: Found, own: Own | undefined, flags: ProjectFlags): ProjectFlags {
  if (own !== undefined && (key === own.key || record.project === own.project)) return flags;
  if (record.folder !== process.cwd())
    throw new CommandError(`Daemon ${pid} was started in ${record.folder ?? "another folder"}; restart it from there.`);
  return record.flags ?? flags;
}

async function logs({ home, terminal, options }: Context): Promise<ExitCode> {
  const file = home.daemonLog;
  const tail = new LogTail(file);
  if (!tail.exists && options.follow !== true) {
    terminal.say(`No daemon has written anything yet; its log will be ${file}.\n`);
    return Exit.Ok;
  }
  const view =
    options.json === true ? undefined : new LogView(terminal.isDataShown ? terminal.colors : createColors(false));
  const print = () =>
    tail.read((text) => (view === undefined ? printData(text, terminal) : terminal.print(view.take(text))));
  await print();
  if (options.follow !== true) {
    terminal.print(view?.end() ?? "");
    return Exit.Ok;
  }
  const stopped = Promise.withResolvers<void>();
  const stopListening = terminal.onInterrupt(() => stopped.resolve());
  let printing = Promise.resolve();
  let isLooking = false;
  const watcher = watch(home.folder, (_, name) => {
    if (name?.startsWith("daemon.log") !== true || isLooking) return;
    // One more look is enough for all that is written until it begins.
    isLooking = true;
    printing = printing.then(() => {
      isLooking = false;
      return print();
    });
  });
  await stopped.promise;
  watcher.close();
  stopListening();
  return Exit.Ok;
}
