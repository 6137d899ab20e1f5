import path from "node:path";
import { nextTurn, systemClock } from "../clock.ts";
import { createSecret } from "../ids.ts";
import { type Logger, openLog } from "../log.ts";
import type { ProcessEnvironment } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import { fingerprint, isPackFolder, keyVariable, type ProjectFlags, projectParts } from "../project/project.ts";
import { takeWrap } from "../project/wrap.ts";
import { openRuntime, type Runtime, type RuntimeParts } from "../runtime/runtime.ts";
import { serveStreams } from "../serve.ts";
import { loadSettings, type Settings, sourcesOf } from "../settings/settings.ts";
import { isAcrossMachines } from "../store/open.ts";
import { takeLock } from "../store/sqlite/lock.ts";
import { system } from "../system/system.ts";
import { Broker, type BrokerOptions } from "./broker.ts";
import { CountedVariables } from "./counted-variables.ts";
import { AnswerKeeper } from "./keep-answers.ts";
import { Lifecycle, type LifecycleOptions } from "./lifecycle.ts";

export interface DaemonOptions {
  readonly flags: ProjectFlags;
  /** The key that the starter looks for: under another one it would not find this daemon. Default: any. */
  readonly wantedKey?: string | undefined;
  readonly host: DaemonHost;
  /** Parts of its runtime that are not what the settings say: a test's clock or commands, and `isKillable`. */
  readonly parts?: RuntimeParts;
}

/** The process around a daemon. The daemon reads and changes nothing of its process but through this. */
export interface DaemonHost {
  /** Identifies the daemon: it is in the daemon's record and status. */
  readonly pid: number;
  readonly cwd: string;
  readonly env: ProcessEnvironment;
  /** Appends to the daemon's log. */
  writeLog(text: string): void;
  /** Called before a daemon starts that serves sessions of every folder, so that relative paths are relative to none. */
  enterRoot?(): void;
  /** Called once the daemon has its lock, and before it loads code of the project. */
  guard?(daemon: GuardedDaemon): void;
  /** Called once the code is loaded. The function that it returns is called when the daemon has ended. */
  watch?(daemon: GuardedDaemon): () => void;
}

/** What the process around a daemon needs to know to keep commands from harming the daemon. */
export interface GuardedDaemon {
  readonly settings: Settings;
  readonly log: Logger;
  /** The file of a command; undefined when there is none. */
  fileOf(command: string): string | undefined;
  /** Shuts this daemon down, so that the stdio proxies start another one at once. */
  replace(): void;
}

/** `taken`: another daemon has this key. `another`: the project's key counts these variables now, and is another one. */
export type StartedDaemon =
  | { readonly kind: "ready"; readonly daemon: Daemon }
  | { readonly kind: "taken" }
  | { readonly kind: "another"; readonly names: readonly string[] };

/**
 * Reads what the starter says by two variables, and deletes them from `env`: what the commands of the daemon start must
 * not inherit them.
 */
export function takeStart(
  flags: ProjectFlags,
  env: Record<string, string | undefined>,
): Pick<DaemonOptions, "flags" | "wantedKey"> {
  const wantedKey = env[keyVariable()];
  delete env[keyVariable()];
  const wrap = takeWrap(env);
  return { flags: wrap === undefined ? flags : { ...flags, wrap }, wantedKey };
}

/** The word by which the starter of a daemon is told how the start went. See `startDaemon` for its reader. */
export function toReport(started: StartedDaemon): string {
  return started.kind === "another" ? `another ${JSON.stringify(started.names)}` : started.kind;
}

interface DaemonParts {
  readonly settings: Settings;
  readonly host: DaemonHost;
  readonly guarded: GuardedDaemon;
  readonly runtime: Runtime;
  readonly lifecycle: Lifecycle;
  readonly broker: Broker;
  readonly shutdown: AbortController;
}

/** Serves one project to every stdio proxy and MCP client that connects to its socket. */
export class Daemon {
  readonly #parts: DaemonParts;
  readonly #killed = Promise.withResolvers<void>();
  #stopWatching: () => void = () => {};
  /** Resolves when the daemon has ended: after `stop`, after `kill`, or because nobody needed it. */
  readonly ended: Promise<void>;

  /** Resolves when the daemon listens on its socket, or cannot be the one that is wanted. Throws on bad settings. */
  static async start({ flags, wantedKey, host, parts = {} }: DaemonOptions): Promise<StartedDaemon> {
    const found = await loadSettings({ cwd: host.cwd, env: host.env, flags });
    if (wantedKey !== undefined && wantedKey !== found.daemon.key) return { kind: "another", names: found.daemon.env };
    const settings = toServed(found);
    if (isOfEveryFolder(settings)) host.enterRoot?.();
    const log = openLog({
      level: settings.logLevel,
      isTerminal: false,
      write: (text) => host.writeLog(text),
      facts: { pid: host.pid },
    });
    const secret = system.areSocketsSeen ? createSecret() : undefined;
    let runtime: Runtime | undefined;
    const lifecycle = Lifecycle.begin({
      home: settings.home,
      ...settings.daemon,
      about: { ...aboutOf(found, flags, host.cwd), ...(secret !== undefined && { secret }) },
      pid: host.pid,
      isWorking: () => runtime !== undefined && isWorking(runtime),
      hasLiveTasks: async () => (await runtime?.tasks.hasLive()) ?? false,
      takeLock,
      clock: parts.clock ?? systemClock,
      log,
    });
    if (lifecycle === undefined) return { kind: "taken" };
    const guarded: GuardedDaemon = {
      settings,
      log,
      fileOf: (command) => runtime?.catalog.get(command)?.file,
      replace: () => lifecycle.makeWay(),
    };
    host.guard?.(guarded);
    const variables = new CountedVariables(settings, host.env, log);
    let broker: Broker | undefined;
    try {
      runtime = await openRuntime(settings, {
        loadsLate: true,
        ...parts,
        log,
        mayReload: (folders) => variables.areStill(folders, () => broker?.sendOn()),
        environment: () => (isAcrossMachines(settings.store) ? settings.environment : variables.environment),
      });
      // A file may have changed since it was searched for variables and before it was loaded.
      if (!variables.areStill(settings.commandFolders)) {
        await lifecycle.leave(true);
        await runtime.close(0);
        return { kind: "another", names: variables.names };
      }
      const shutdown = new AbortController();
      broker = createBroker({ runtime, lifecycle, host, shutdown: shutdown.signal, variables, secret, log });
      await lifecycle.open(broker);
      return { kind: "ready", daemon: new Daemon({ settings, host, guarded, runtime, lifecycle, broker, shutdown }) };
    } catch (error) {
      void lifecycle.leave(true);
      throw error;
    }
  }

  private constructor(parts: DaemonParts) {
    this.#parts = parts;
    // The starter is told first that the daemon listens: its client waits.
    const served = nextTurn().then(() => this.#serve());
    this.ended = Promise.race([served, this.#killed.promise]);
  }

  get pid(): number {
    return this.#parts.host.pid;
  }

  /** The path of its socket, or the name of its pipe on Windows. */
  get socket(): string {
    return this.#parts.lifecycle.clientSocket;
  }

  get settings(): Settings {
    return this.#parts.settings;
  }

  /**
   * Shuts down and resolves when the daemon has ended. Calls become tasks, and what must not run twice has the grace
   * period to end (setting `graceSeconds`, default 25 s); with `isNow` it has no time. With `keepsQuestions` what must
   * not run twice and waits for a person stays until it is answered or its question expires.
   */
  async stop({ isNow = false, keepsQuestions = false } = {}): Promise<void> {
    await this.#parts.lifecycle.leave(isNow, keepsQuestions);
    await this.ended;
  }

  /**
   * Ends as in a crash, as far as its process can go on: connections break, runs stop, and nothing more is written.
   * Socket, record and leases stay. Needs `isKillable` of the parts.
   */
  async kill(): Promise<void> {
    const { lifecycle, runtime } = this.#parts;
    lifecycle.abandon();
    this.#stopWatching();
    await runtime.kill();
    this.#killed.resolve();
  }

  /** From the moment it listens until its work has ended. */
  async #serve(): Promise<void> {
    const { settings, host, guarded, runtime, lifecycle, broker, shutdown } = this.#parts;
    const { log } = guarded;
    this.#stopWatching = host.watch?.(guarded) ?? this.#stopWatching;
    log.info("the daemon listens", {
      socket: lifecycle.socket,
      version: settings.version,
      folders: foldersOf(runtime),
    });
    await runtime.tasks.start();
    keepAnswers(runtime, shutdown.signal);
    const { isNow } = await lifecycle.left;
    // Idle connections are closed at once; the others when their calls are answered.
    shutdown.abort();
    if (isWorking(runtime))
      log.info("the daemon drains", { ...runtime.tasks.running, questions: runtime.tasks.questionsAtRisk.length });
    const { questionsEnd, graceEnd } = lifecycle;
    const { waiting } = await runtime.close(isNow ? 0 : settings.graceSeconds * 1000, questionsEnd, graceEnd);
    await lifecycle.endDrain();
    await broker.closeAll(waiting);
    log.info("the daemon has left", { waiting });
    this.#stopWatching();
  }
}

/** Whether this process runs a call or a task right now. */
const isWorking = ({ tasks: { running } }: Runtime) => running.calls + running.tasks > 0;

/** True for a daemon that serves no project of a folder: its sessions may be in any. */
const isOfEveryFolder = ({ daemon, isWrap }: Settings) => daemon.isPackAlone || isWrap;

/** The first front's folder and host are not everybody's. */
function toServed(settings: Settings): Settings {
  const { commandFolders, daemon } = settings;
  return {
    ...settings,
    hostName: undefined,
    ...(isOfEveryFolder(settings) && { workingFolder: undefined }),
    commandFolders: daemon.isPackAlone && thisProgram.authors === undefined ? commandFolders.slice(-1) : commandFolders,
  };
}

/** What the daemon's record says, so that the daemon is also found by other flags than those that started it. */
function aboutOf(
  settings: Settings,
  { commands, bundled, scope }: ProjectFlags,
  folder: string,
): NonNullable<LifecycleOptions["about"]> {
  const { configFile, isWrap, upstreams } = settings;
  return {
    project: fingerprint(projectParts(sourcesOf(settings), configFile)),
    ...(!isOfEveryFolder(settings) && { folder }),
    ...(isWrap && { wraps: Object.keys(upstreams) }),
    flags: {
      ...(commands !== undefined && { commands }),
      ...(bundled !== undefined && { bundled }),
      ...(scope !== undefined && { scope }),
    },
  };
}

/** The folders that are served now: the bundled commands are not where a project has its own. */
function foldersOf({ settings, catalog }: Runtime): readonly string[] {
  const hasPack = [...catalog.entries, ...catalog.pending].some(({ isBundled }) => isBundled === true);
  return settings.commandFolders.filter((folder) => hasPack || !isPackFolder(folder));
}

interface BrokerParts {
  readonly runtime: Runtime;
  readonly lifecycle: Lifecycle;
  readonly host: DaemonHost;
  readonly shutdown: AbortSignal;
  readonly variables: CountedVariables;
  readonly secret: string | undefined;
  readonly log: Logger;
}

function createBroker({ runtime, lifecycle, host, shutdown, variables, secret, log }: BrokerParts): Broker {
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
        namesFolder: facts.isFront !== true,
        leaving: shutdown,
      }),
    status: () => ({
      pid: host.pid,
      version: settings.version,
      startedAt,
      cwd: isOfEveryFolder(settings) ? path.parse(host.cwd).root : host.cwd,
      folders: foldersOf(runtime),
      configFile: settings.configFile,
      socket: lifecycle.clientSocket,
      running: runtime.tasks.running.tasks,
      calls: runtime.tasks.running.calls,
      questions: runtime.tasks.questionsAtRisk,
      graceSeconds: settings.graceSeconds,
      ...(runtime.upstreams !== undefined && {
        upstreams: runtime.upstreams.statuses(),
        project: settings.project,
        isWrap: settings.isWrap,
      }),
    }),
    ...restartOf(runtime),
    onStop: (isNow, keepsQuestions) => lifecycle.leave(isNow, keepsQuestions),
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
 * Stores the lists that a stdio proxy may answer with while the next daemon starts. Tools that an author registers by
 * hand are made for one client each, so their lists are not stored.
 */
function keepAnswers(runtime: Runtime, shutdown: AbortSignal): void {
  const { settings, clock, log, catalog } = runtime;
  // The lists of an upstream come from its stored catalog: to ask for them would start the upstream for nobody.
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
        leaving: shutdown,
      }),
    clock,
    log,
  });
  // The lists are made of loaded commands, and the first call does not wait for the other files.
  void catalog.whenLoaded.then(() => keeper.keep());
  catalog.onChange(() => keeper.keep());
}
