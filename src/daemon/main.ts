import { closeSync, writeSync } from "node:fs";
import { systemClock } from "../clock.ts";
import { guardBuiltins } from "../command/guard-builtins.ts";
import { watchLoop } from "../command/loop-watch.ts";
import { describeHarm, limitPrints, surviveCommands, takeStdout } from "../command/process-guard.ts";
import { currentRun } from "../command/running.ts";
import { Exit, type ExitCode, messageOf } from "../errors.ts";
import { createSecret } from "../ids.ts";
import { type Logger, openLog } from "../log.ts";
import { thisProgram } from "../program/program.ts";
import type { ProjectFlags } from "../project/project.ts";
import { countedNames, fingerprint, isPackFolder, keyVariable, projectParts } from "../project/project.ts";
import { storeNames } from "../project/stored-project.ts";
import { takeWrap } from "../project/wrap.ts";
import { openRuntime, type Runtime } from "../runtime/runtime.ts";
import { serveStreams } from "../serve.ts";
import { lookForNames, marksOfWrap, markValues } from "../settings/names-read.ts";
import { loadSettings, type Settings, sourcesOf } from "../settings/settings.ts";
import { isAcrossMachines } from "../store/open.ts";
import { takeLock } from "../store/sqlite/lock.ts";
import { onStop } from "../system/on-stop.ts";
import { system } from "../system/system.ts";
import type { EnvironmentMarks } from "../task/task.ts";
import { Broker, type BrokerOptions } from "./broker.ts";
import { DoingFile } from "./doing.ts";
import { AnswerKeeper } from "./keep-answers.ts";
import { Lifecycle, type LifecycleOptions } from "./lifecycle.ts";
import { keepLogBounded } from "./log-file.ts";

/** A call that fails at once is answered within this. */
const answerMs = 100;
/** Whoever started us waits for one word here. */
const reportFd = 3;

/** The daemon: serves a project to every front that comes, until nobody needs it. */
export async function run({
  flags: typed,
  words,
}: {
  flags: ProjectFlags;
  words: readonly string[];
}): Promise<ExitCode> {
  const report = words.includes("--report") ? tellStarter : () => {};
  try {
    const wanted = process.env[keyVariable()];
    // What commands start themselves inherits our environment, and this is between front and daemon alone.
    delete process.env[keyVariable()];
    const wrap = takeWrap(process.env);
    const flags = wrap === undefined ? typed : { ...typed, wrap };
    const settings = await loadSettings({ cwd: process.cwd(), env: process.env, flags });
    // Under another key than we are looked for by, nobody would find us.
    if (wanted !== undefined && wanted !== settings.daemon.key) {
      report(`another ${JSON.stringify(settings.daemon.env)}`);
      return Exit.Ok;
    }
    return await serve(settings, flags, report);
  } catch (error) {
    report(`failed ${messageOf(error)}`);
    throw error;
  }
}

async function serve(found: Settings, flags: ProjectFlags, report: (word: string) => void): Promise<ExitCode> {
  const settings = toServed(found);
  const secret = system.areSocketsSeen ? createSecret() : undefined;
  const about = { ...aboutOf(found, flags), ...(secret !== undefined && { secret }) };
  // Sessions of every folder are served: none of them is the one that relative paths mean.
  if (settings.daemon.isPackAlone || settings.isWrap) process.chdir("/");
  const out = { write: (text: string): void => void process.stderr.write(text) };
  const log = openLog({
    level: settings.logLevel,
    isTerminal: false,
    write: (text) => out.write(text),
    facts: { pid: process.pid },
  });
  let runtime: Runtime | undefined;
  const lifecycle = Lifecycle.begin({
    home: settings.home,
    ...settings.daemon,
    about,
    pid: process.pid,
    hasLiveTasks: async () => (await runtime?.tasks.hasLive()) ?? false,
    takeLock,
    clock: systemClock,
    log,
  });
  if (lifecycle === undefined) {
    report("taken");
    return Exit.Ok;
  }
  out.write = guardProcess(settings, log);
  guardBuiltins((harm) => {
    // What else they have changed is not known: only a fresh process is as it should be.
    log.error(describeHarm(harm, "this daemon is replaced", (name) => runtime?.catalog.get(name)?.file));
    // The call it came by is answered first: nobody waits yet for one that has just begun.
    systemClock.after(answerMs, () => lifecycle.makeWay());
  });
  const variables = new Variables(settings, log);
  const doing = new DoingFile(settings.home, settings.daemon.key, process.pid);
  let broker: Broker | undefined;
  const mayReload = (folders: readonly string[]) => variables.areStill(folders, () => broker?.sendOn());
  runtime = await openRuntime(settings, {
    log,
    mayReload,
    environment: () => (isAcrossMachines(settings.store) ? settings.environment : variables.environment),
  });
  // A file may have changed between the look at it and its loading.
  if (!variables.areStill(settings.commandFolders)) {
    report(`another ${JSON.stringify(variables.names)}`);
    lifecycle.leave(true);
    await runtime.close(0);
    return Exit.Ok;
  }
  const stopWatching = watchLoop(systemClock, log, (names) => doing.write(names, systemClock.now()));
  const leaving = new AbortController();
  broker = createBroker({ runtime, lifecycle, leaving: leaving.signal, variables, secret, log });
  await serveUntilLeft({ runtime, lifecycle, broker, leaving, onReady: () => report("ready"), log });
  stopWatching();
  doing.close();
  return Exit.Ok;
}

interface ServedParts {
  readonly runtime: Runtime;
  readonly lifecycle: Lifecycle;
  readonly broker: Broker;
  readonly leaving: AbortController;
  readonly onReady: () => void;
  readonly log: Logger;
}

/** From the moment it listens until its work has ended. */
async function serveUntilLeft({ runtime, lifecycle, broker, leaving, onReady, log }: ServedParts): Promise<void> {
  const { version, graceSeconds } = runtime.settings;
  onStop(() => lifecycle.leave());
  await lifecycle.open(broker);
  onReady();
  log.info("the daemon listens", { socket: lifecycle.socket, version, folders: foldersOf(runtime) });
  await runtime.tasks.start();
  keepAnswers(runtime, leaving.signal);
  const { isNow } = await lifecycle.left;
  // Whoever waits for nothing goes to the next daemon at once; the others when they have been told where their calls
  // went.
  leaving.abort();
  const { waiting } = await runtime.close(isNow ? 0 : graceSeconds * 1000);
  await broker.closeAll(waiting);
  log.info("the daemon has left", { waiting });
}

/** Keeps what commands print within bounds, and this process alive when they fail; returns how the log is written. */
function guardProcess({ home, logFiles }: Settings, log: Logger): (text: string) => void {
  takeStdout(process);
  const write = limitPrints(process, {
    clock: systemClock,
    who: () => currentRun()?.name,
    onLeftOut: (sentence) => log.warn(sentence),
  });
  keepLogBounded({ file: home.daemonLog, files: logFiles, fd: process.stderr.fd, clock: systemClock });
  surviveCommands(process, {
    currentRun,
    onBug: (error) => log.error("nobody caught this; please report it", { error }),
  });
  return write;
}

/** The first front's folder and host are not everybody's. */
function toServed(settings: Settings): Settings {
  const { commandFolders, daemon } = settings;
  return {
    ...settings,
    hostName: undefined,
    commandFolders: daemon.isPackAlone && thisProgram.authors === undefined ? commandFolders.slice(-1) : commandFolders,
  };
}

/** What its record says, so that it is found by whoever types something else than its starter did. */
function aboutOf(
  settings: Settings,
  { commands, bundled, scope }: ProjectFlags,
): NonNullable<LifecycleOptions["about"]> {
  const { configFile, daemon, isWrap, upstreams } = settings;
  return {
    project: fingerprint(projectParts(sourcesOf(settings), configFile)),
    ...(!daemon.isPackAlone && !isWrap && { folder: process.cwd() }),
    ...(isWrap && { wraps: Object.keys(upstreams) }),
    flags: {
      ...(commands !== undefined && { commands }),
      ...(bundled !== undefined && { bundled }),
      ...(scope !== undefined && { scope }),
    },
  };
}

/** Those that are served now: the pack steps aside for a project's own commands. */
function foldersOf({ settings, catalog }: Runtime): readonly string[] {
  const hasPack = catalog.entries.some(({ isBundled }) => isBundled === true);
  return settings.commandFolders.filter((folder) => hasPack || !isPackFolder(folder));
}

/** The variables that make another daemon, as the project's files have them now. */
class Variables {
  readonly #settings: Settings;
  readonly #log: Logger;
  /** As we were started: commands may write to theirs. */
  readonly #env = { ...process.env };
  names: readonly string[];
  environment: EnvironmentMarks;

  constructor(settings: Settings, log: Logger) {
    this.#settings = settings;
    this.#log = log;
    this.names = settings.daemon.env;
    this.environment = settings.environment;
  }

  /**
   * False when the code reads others than this daemon is named by: whose values it has of those is not known, so that
   * code is not loaded here.
   */
  areStill(folders: readonly string[], onOthers = () => {}): boolean {
    const { home, configFile, daemon } = this.#settings;
    const sources = sourcesOf(this.#settings);
    const found = lookForNames(folders, configFile);
    storeNames(home, projectParts(sources, configFile), found.names);
    this.names = countedNames(daemon.named, found.names);
    this.environment = { ...markValues(home, this.#env, this.names), ...marksOfWrap(home, sources.wrap) };
    if (!found.isWhole)
      this.#log.warn(
        "not every file was looked at for the variables it reads; name those that commands read in the setting `env`",
      );
    if (this.names.join() === daemon.env.join()) return true;
    const differing = [
      ...this.names.filter((name) => !daemon.env.includes(name)),
      ...daemon.env.filter((name) => !this.names.includes(name)),
    ];
    this.#log.info(
      `the code reads other variables than when this daemon started: ${differing.join(", ")}; its sessions go to the daemons of their values`,
    );
    onOthers();
    return false;
  }
}

interface BrokerParts {
  readonly runtime: Runtime;
  readonly lifecycle: Lifecycle;
  readonly leaving: AbortSignal;
  readonly variables: Variables;
  readonly secret: string | undefined;
  readonly log: Logger;
}

function createBroker({ runtime, lifecycle, leaving, variables, secret, log }: BrokerParts): Broker {
  const { settings, clock } = runtime;
  const startedAt = clock.now();
  return new Broker({
    key: settings.daemon.key,
    env: () => variables.names,
    onConnection: (socket, facts) =>
      serveStreams(runtime, {
        input: socket,
        output: socket,
        write: (part, onWritten) => socket.write(part, onWritten),
        ...facts,
        leaving,
      }),
    status: () => ({
      pid: process.pid,
      version: settings.version,
      startedAt,
      cwd: process.cwd(),
      folders: foldersOf(runtime),
      configFile: settings.configFile,
      socket: lifecycle.socket,
      running: runtime.tasks.running.tasks,
      calls: runtime.tasks.running.calls,
      graceSeconds: settings.graceSeconds,
      ...(runtime.upstreams !== undefined && {
        upstreams: runtime.upstreams.statuses(),
        project: settings.project,
        isWrap: settings.isWrap,
      }),
    }),
    ...restartOf(runtime),
    onStop: (isNow) => lifecycle.leave(isNow),
    hasRoom: system.hasDescriptorsLeft,
    isReplaced: () => lifecycle.isReplaced,
    secret,
    log,
  });
}

function restartOf({ upstreams }: Runtime): Pick<BrokerOptions, "onRestart"> {
  return upstreams === undefined ? {} : { onRestart: (name) => upstreams.restart(name) };
}

/**
 * Leaves behind what the next front may be told while its daemon starts; what an author has registered by hand is made
 * for one client, and only a daemon can tell it.
 */
function keepAnswers(runtime: Runtime, leaving: AbortSignal): void {
  const { settings, clock, log, catalog } = runtime;
  // Those of an upstream come from its stored catalog; to be asked would start it for nobody.
  if (settings.mcp !== undefined || Object.keys(settings.upstreams).length > 0) return;
  const keeper = new AnswerKeeper({
    home: settings.home,
    whose: { key: settings.daemon.key, version: settings.version },
    serve: (input, output) =>
      serveStreams(runtime, {
        input,
        output,
        write: (part, onWritten) => output.write(part, onWritten),
        isFront: true,
        leaving,
      }),
    clock,
    log,
  });
  keeper.keep();
  catalog.onChange(() => keeper.keep());
}

/** One word to whoever started us, then the pipe is closed: a second word has nobody to hear it. */
function tellStarter(word: string): void {
  try {
    writeSync(reportFd, word);
    closeSync(reportFd);
  } catch {
    // The starter is gone; or it was told already.
  }
}
