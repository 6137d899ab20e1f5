import { createReadStream, existsSync, statSync, watch } from "node:fs";
import { createColors } from "picocolors";
import { formatDuration, sleep, systemClock } from "../../clock.ts";
import { askDaemon, DaemonUnreachable, isAlive, startDaemon } from "../../daemon/connect.ts";
import type { DaemonStatus } from "../../daemon/greeting.ts";
import { readRecords, removeRecord } from "../../daemon/record.ts";
import { CommandError, Exit, type ExitCode, messageOf, RuntimeError, UsageError } from "../../errors.ts";
import { addressOf, atAddress } from "../../front.ts";
import { type Home, openHome } from "../../paths.ts";
import { printHelp } from "../layout.ts";
import { LogView } from "../log-view.ts";
import type { VerbCall } from "../main.ts";
import { printData } from "../run.ts";
import { clean, type Terminal } from "../terminal.ts";
import { parseVerb } from "../verb.ts";
import { isLoadedBefore } from "./loaded-before.ts";

interface Context {
  readonly call: VerbCall;
  readonly terminal: Terminal;
  readonly home: Home;
  readonly options: Record<string, unknown>;
}

interface Subverb {
  readonly usage: string;
  readonly summary: string;
  readonly run: (context: Context) => Promise<ExitCode>;
}

const subverbs: Record<string, Subverb> = {
  status: { usage: "status [--json]", summary: "the daemons of this home", run: status },
  stop: { usage: "stop [--all] [--now]", summary: "end this project's daemon once its tasks have ended, or given back after 25 s", run: stop },
  restart: { usage: "restart [--now]", summary: "end it and start another; connected clients stay connected", run: restart },
  logs: { usage: "logs [--follow] [--json]", summary: "what the daemons of this home have written", run: logs },
};

const stopLimitMs = 40_000;
const lookMs = 50;

export async function run(call: VerbCall): Promise<ExitCode> {
  const [name = "", ...words] = call.words;
  if (name === "" || name === "--help" || name === "-h") {
    printHelp(help(), call.terminal);
    return Exit.Ok;
  }
  const subverb = Object.hasOwn(subverbs, name) ? subverbs[name] : undefined;
  if (subverb === undefined) throw new UsageError(`Unknown command \`daemon ${name}\`; there are ${Object.keys(subverbs).join(", ")}.`);
  const parsed = parseVerb(`daemon ${name}`, subverb.summary, words, (program) => {
    if (name === "status") program.option("--json", "print as JSON");
    if (name === "stop") program.option("--all", "every daemon of this home");
    if (name === "stop" || name === "restart") program.option("--now", "wait for no task: safe ones are run again later, others end as interrupted");
    if (name === "logs") program.option("--follow", "go on printing what is written").option("--json", "print the lines as they are in the file: JSON");
  });
  if ("help" in parsed) {
    printHelp(parsed.help, call.terminal);
    return Exit.Ok;
  }
  try {
    return await subverb.run({ call, terminal: call.terminal, home: openHome(process.env), options: parsed.options });
  } catch (error) {
    throw error instanceof DaemonUnreachable ? new RuntimeError("HOME_UNUSABLE", error.message, { cause: error }) : error;
  }
}

function help(): string {
  const width = Math.max(...Object.values(subverbs).map(({ usage }) => usage.length)) + 2;
  return `Usage: meanwhile daemon <what>\n\n${Object.values(subverbs)
    .map(({ usage, summary }) => `  ${usage.padEnd(width)}${summary}\n`)
    .join("")}`;
}

/** A daemon that has a record: what it tells of itself, or why it does not. */
type Found =
  | ({ readonly kind: "well" } & DaemonStatus)
  | { readonly kind: "silent"; readonly pid: number }
  | { readonly kind: "refused"; readonly why: string };

/** Every daemon that is there. The record of one that has crashed is of no more use. */
async function findDaemons(home: Home): Promise<ReadonlyMap<string, Found>> {
  const found = new Map<string, Found>();
  for (const [key, { pid }] of recordsOf(home)) {
    try {
      const reply = await askDaemon(home, key, { meanwhile: "status" });
      if (reply === "silent") found.set(key, { kind: "silent", pid });
      else if (reply?.meanwhile === "status") {
        const { meanwhile: _word, ...told } = reply;
        found.set(key, { kind: "well", ...told });
      } else if (!isAlive(pid)) removeRecord(home, key, pid);
    } catch (error) {
      if (!(error instanceof DaemonUnreachable)) throw error;
      found.set(key, { kind: "refused", why: error.message });
    }
  }
  return found;
}

function recordsOf(home: Home): ReturnType<typeof readRecords> {
  try {
    return readRecords(home);
  } catch (error) {
    throw new RuntimeError("HOME_UNUSABLE", `Cannot read the home folder ${home.folder}: ${messageOf(error)}.`, { cause: error });
  }
}

/** This project's key; undefined where its config cannot be read, which is no reason to say nothing about daemons. */
async function ownKey({ call }: Context): Promise<string | undefined> {
  try {
    return (await addressOf(call.flags, { mayLoad: false })).key;
  } catch (error) {
    if (!(error instanceof DaemonUnreachable)) throw error;
    call.terminal.say(`${call.terminal.colors.yellow("!")} Which daemon is this project's is not known: ${error.message}\n`);
    return undefined;
  }
}

async function status(context: Context): Promise<ExitCode> {
  const { home, terminal, options } = context;
  const daemons = await findDaemons(home);
  const own = await ownKey(context);
  const described = [...daemons].map(([key, daemon]) => ({ ...daemon, isThisProject: key === own }));
  if (options.json === true) terminal.print(`${JSON.stringify({ daemons: described }, null, 2)}\n`);
  else if (described.length === 0) terminal.print("No daemon runs; the next `meanwhile serve` starts one.\n");
  else terminal.print(described.map((daemon) => describe(daemon, terminal)).join("\n"));
  return Exit.Ok;
}

function describe(daemon: Found & { isThisProject: boolean }, terminal: Terminal): string {
  const { bold, dim, green, red } = terminal.colors;
  const whose = daemon.isThisProject ? "  this project's" : "";
  if (daemon.kind === "refused") return `${red("●")} ${clean(daemon.why)}${whose}\n`;
  if (daemon.kind === "silent") return `${red("●")} ${bold(`Daemon ${daemon.pid}`)}  does not answer; meanwhile daemon stop --now ends it${whose}\n`;
  const count = (number: number, word: string) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const rows = [
    ["commands", [...daemon.folders, ...(daemon.configFile === undefined ? [] : [daemon.configFile])].join(", ")],
    ["socket", daemon.socket],
    ["serves", `${count(daemon.connections, "client")}, runs ${count(daemon.running, "task")}`],
  ];
  const mark = daemon.isThisProject ? green("●") : "●";
  const heading = `${mark} ${bold(`Daemon ${daemon.pid}`)}  ${daemon.version}, up ${formatDuration(systemClock.now() - daemon.startedAt)}`;
  return `${heading}${whose}\n${rows.map(([name = "", text = ""]) => `    ${dim(name.padEnd(10))}${clean(text)}\n`).join("")}`;
}

async function stop(context: Context): Promise<ExitCode> {
  const { home, options } = context;
  const daemons = await findDaemons(home);
  const own = options.all === true ? undefined : await ownKey(context);
  const wanted = [...daemons].filter(([key]) => options.all === true || key === own);
  if (wanted.length === 0) {
    const others = daemons.size === 0 ? "" : ` ${daemons.size} of other projects or settings run${daemons.size === 1 ? "s" : ""}; --all ends them too.`;
    throw new CommandError(`No daemon of this project runs.${others}`);
  }
  for (const [key, daemon] of wanted) await stopOne(context, key, daemon);
  return Exit.Ok;
}

async function stopOne({ home, options, terminal }: Context, key: string, daemon: Found): Promise<void> {
  if (daemon.kind === "refused") throw new CommandError(daemon.why);
  const { pid } = daemon;
  const isNow = options.now === true;
  if (daemon.kind === "silent") {
    if (!isNow) throw new CommandError(`Daemon ${pid} does not answer; --now ends it all the same.`);
    // It listens and does not speak: what it was doing is found and taken up by the next one.
    process.kill(pid, "SIGKILL");
  } else await askDaemon(home, key, { meanwhile: "stop", isNow });
  const end = systemClock.monotonic() + stopLimitMs;
  while (isAlive(pid)) {
    if (systemClock.monotonic() > end) throw new CommandError(`Daemon ${pid} was told to stop and still runs; see ${home.daemonLog}.`);
    await sleep(systemClock, lookMs);
  }
  terminal.say(`${terminal.colors.green("✓")} Daemon ${pid} has ended\n`);
}

async function restart(context: Context): Promise<ExitCode> {
  const { home, terminal, call } = context;
  const key = await ownKey(context);
  const running = key === undefined ? undefined : (await findDaemons(home)).get(key);
  if (key !== undefined && running !== undefined) await stopOne(context, key, running);
  // To start the first one is to run the project's code, which is for those who serve it.
  else if (key === undefined || !isLoadedBefore(call.flags))
    throw new CommandError("No daemon of this project runs, and its files have not been loaded as they are now; the next `meanwhile serve` does both.");
  const started = await atAddress(call.flags, async (next) => {
    await startDaemon(next);
    return await askDaemon(home, next.key, { meanwhile: "status" });
  });
  if (started === "silent" || started?.meanwhile !== "status") throw new CommandError(`The new daemon does not answer; see ${home.daemonLog}.`);
  terminal.say(`${terminal.colors.green("✓")} Daemon ${started.pid} serves ${started.folders.map(clean).join(", ")}\n`);
  return Exit.Ok;
}

async function logs({ home, terminal, options }: Context): Promise<ExitCode> {
  const file = home.daemonLog;
  if (!existsSync(file) && options.follow !== true) {
    terminal.say(`No daemon has written anything yet; its log will be ${file}.\n`);
    return Exit.Ok;
  }
  const view = options.json === true ? undefined : new LogView(terminal.isDataShown ? terminal.colors : createColors(false));
  let printed = await printFrom(file, 0, { terminal, view });
  if (options.follow !== true) {
    terminal.print(view?.end() ?? "");
    return Exit.Ok;
  }
  const stopped = Promise.withResolvers<void>();
  const stopListening = terminal.onInterrupt(() => stopped.resolve());
  let printing = Promise.resolve();
  const watcher = watch(home.folder, (_, name) => {
    if (name !== "daemon.log") return;
    printing = printing.then(async () => {
      const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
      // A shorter file is a new one.
      printed = await printFrom(file, size < printed ? 0 : printed, { terminal, view });
    });
  });
  await stopped.promise;
  watcher.close();
  stopListening();
  return Exit.Ok;
}

interface Printing {
  readonly terminal: Terminal;
  /** Absent where the file is printed as it is. */
  readonly view: LogView | undefined;
}

/** Prints a file from a place on; where it ends. */
async function printFrom(file: string, start: number, { terminal, view }: Printing): Promise<number> {
  if (!existsSync(file)) return 0;
  let end = start;
  // A letter may stand across two reads.
  const decoder = new TextDecoder();
  for await (const chunk of createReadStream(file, { start })) {
    end += (chunk as Buffer).length;
    const text = decoder.decode(chunk as Buffer, { stream: true });
    if (view === undefined) printData(text, terminal);
    else terminal.print(view.take(text));
  }
  return end;
}
