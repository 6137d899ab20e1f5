import { existsSync, linkSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { type Clock, systemClock } from "./clock.ts";
import { localKey, localUser } from "./command/caller.ts";
import { type Catalog, openLiveCatalog } from "./command/catalog.ts";
import { loadAsOf } from "./command/load.ts";
import { watchLoop } from "./command/loop-watch.ts";
import { isStoreError, messageOf, RuntimeError } from "./errors.ts";
import { createFirstNumber, createId, createSecret } from "./ids.ts";
import type { Logger } from "./log.ts";
import { Conversation } from "./mcp/conversation.ts";
import type { GuestHook, Sdk } from "./mcp/guest-server.ts";
import { Guests } from "./mcp/guests.ts";
import { createServing, type Serving } from "./mcp/serving.ts";
import { ensureHome, type Home, toWorkingFolder } from "./paths.ts";
import { servedCatalog, unknownLongTools } from "./project/project-commands.ts";
import { servedFolders } from "./project/stored-project.ts";
import type { Tasks, TasksOptions } from "./runtime/tasks.ts";
import type { Settings } from "./settings/settings.ts";
import { type Store, storeExists } from "./store/open.ts";
import { system } from "./system/system.ts";
import type { Calls } from "./task/calls.ts";
import type { CommandStats } from "./task/history.ts";
import { type EnvironmentMarks, isTerminal, liveStatuses } from "./task/task.ts";
import type { Worker } from "./task/worker.ts";
import type { HttpDoor } from "./transport/http/http-door.ts";
import type { WritePart } from "./transport/outbox.ts";

/** Calls that somebody waits for, and tasks. */
export interface Running {
  readonly calls: number;
  readonly tasks: number;
}

/** Catalog, tools and tasks put together; doors are opened on it. */
export interface Runtime {
  readonly settings: Settings;
  readonly catalog: Catalog;
  readonly serving: Serving;
  readonly clock: Clock;
  readonly log: Logger;
  /** The home's own secret; made where there is none. */
  token(): string;
  /**
   * Begins to work on what is queued, as soon as its database can be used. Done by the first call that needs it, where
   * nobody does it before.
   */
  startTasks(): Promise<void>;
  /** Whether tasks of this project are queued, run or wait for an answer. */
  hasLiveTasks(): Promise<boolean>;
  /** What this process works on right now. */
  running(): Running;
  /**
   * Hands out calls, gives back what is safe to run again, and lets the rest go on for this long; how many tasks nobody
   * works on then.
   */
  close(graceMs: number): Promise<{ readonly waiting: number }>;
}

export interface RuntimeOptions {
  readonly clock?: Clock;
  /** Closed with the runtime. Default: what the settings name, opened when first needed. */
  readonly store?: Store;
  /** Asked before changed commands are loaded; see `LiveCatalogOptions`. */
  readonly mayReload?: (folders: readonly string[]) => boolean;
  /** What this process has of the variables that the project's code reads. Default: what the settings say. */
  readonly environment?: () => EnvironmentMarks;
  /** Hears which commands run, as long as the event loop turns. */
  readonly onCommands?: (names: readonly string[]) => void;
}

export async function openRuntime(settings: Settings, log: Logger, options: RuntimeOptions = {}): Promise<Runtime> {
  const { clock = systemClock, mayReload, environment, store } = options;
  const live = { clock, isServed: servedFolders(settings), ...(mayReload !== undefined && { mayReload }) };
  const catalog = await openLiveCatalog({ ...servedCatalog(settings, log), ...live });
  const unknown = unknownLongTools(settings.deferral.tools, catalog);
  if (unknown !== undefined) log.warn(unknown);
  const served = new ServedTasks(settings, catalog, log, {
    clock,
    ...(environment !== undefined && { environment }),
    ...(store !== undefined && { store }),
  });
  // Read once: a home that was moved away is not made anew for the sake of its token.
  let known: string | undefined;
  const token = () => (known ??= readToken(settings.home));
  const { mcp: hook, deferral, prompts, followUpTools } = settings;
  const guests =
    hook === undefined
      ? undefined
      : new Guests({ facts: settings, hook: hook as GuestHook, loadSdk: () => loadSdk(settings), log });
  const serving = createServing({
    ...settings,
    facts: settings,
    catalog,
    openCalls: () => served.calls(),
    readStats: () => served.stats(),
    secret: token,
    guests,
    hasPrompts: prompts,
    hasFollowUpTools: followUpTools,
    keepInlineMs: deferral.keepInlineMs,
    clock,
    log,
  });
  const stopWatching = watchLoop(clock, log, options.onCommands);
  const close = async (graceMs: number) => {
    stopWatching();
    catalog.close();
    const waiting = await served.close(graceMs);
    serving.close();
    return { waiting };
  };
  return {
    settings,
    catalog,
    serving,
    clock,
    log,
    token,
    startTasks: async () => {
      await served.calls();
      await served.work();
    },
    hasLiveTasks: () => served.hasLive(),
    running: () => served.running,
    close,
  };
}

/** The tasks of a server: opened when first needed, so that a server which is only asked who it is touches nothing. */
class ServedTasks {
  readonly #settings: Settings;
  readonly #catalog: Catalog;
  readonly #log: Logger;
  readonly #options: TasksOptions;
  #opened: Promise<{ tasks: Tasks; worker: Worker }> | undefined;
  #working: Calls | undefined;
  #worker: Worker | undefined;

  constructor(settings: Settings, catalog: Catalog, log: Logger, options: TasksOptions) {
    this.#settings = settings;
    this.#catalog = catalog;
    this.#log = log;
    this.#options = options;
  }

  /** For requests: from the first one on, this process works on what is queued. */
  calls(): Calls | Promise<Calls> {
    return this.#working ?? this.#start();
  }

  async #start(): Promise<Calls> {
    const { tasks, worker } = await this.#open();
    this.#working ??= tasks.createCalls(worker);
    this.#worker = worker;
    // Whoever has just asked comes first: a call that is done at once does not wait until the queue was looked at.
    setImmediate(() => void this.work());
    return this.#working;
  }

  /** Works on what is queued from now on. */
  async work(): Promise<void> {
    const { tasks, worker } = await this.#open();
    if (worker.isStopped) return;
    worker.start();
    tasks.sweeper.start();
  }

  get running(): Running {
    return this.#worker?.running ?? { calls: 0, tasks: 0 };
  }

  async hasLive(): Promise<boolean> {
    if (this.running.tasks > 0) return true;
    if (!(await this.#isThere())) return false;
    const { tasks } = await this.#open();
    // Nobody stays for what cannot be read.
    return await withoutStore(() => tasks.engine.hasOwn(localKey, { statuses: liveStatuses, withCalls: true }), false);
  }

  /** How long commands take; nothing is opened for a home that has no tasks yet. */
  async stats(): Promise<readonly CommandStats[]> {
    if (!(await this.#isThere())) return [];
    const { tasks } = await this.#open();
    return await tasks.history.stats();
  }

  /** How many of this project's tasks wait for the next process. */
  async close(graceMs: number): Promise<number> {
    const opened = await this.#opened?.catch(() => undefined);
    if (opened === undefined) {
      await this.#options.store?.close();
      return 0;
    }
    const { tasks, worker } = opened;
    tasks.sweeper.stop();
    await worker.stop(graceMs);
    const { project } = this.#settings;
    const list = async () => (await tasks.engine.list(localKey, { project, statuses: liveStatuses })).tasks;
    const live = await withoutStore(list, []);
    await tasks.close();
    return live.filter((task) => !isTerminal(task) && task.lease === undefined).length;
  }

  async #isThere(): Promise<boolean> {
    return (this.#options.store ?? this.#opened) !== undefined || (await storeExists(this.#settings.store));
  }

  #open(): Promise<{ tasks: Tasks; worker: Worker }> {
    this.#opened ??= this.#openOnce().catch((error: unknown) => {
      // What could not be loaded, for want of file descriptors for one, may be by the next request.
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #openOnce(): Promise<{ tasks: Tasks; worker: Worker }> {
    const { openTasks } = await import("./runtime/tasks.ts");
    const tasks = await openTasks(this.#settings, this.#log, { ...this.#options, isPatient: true });
    const worker = tasks.createWorker((name) => this.#catalog.get(name));
    return { tasks, worker };
  }
}

/** What is the case as far as anybody can know without the database. */
async function withoutStore<T>(look: () => Promise<T>, instead: T): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (isStoreError(error)) return instead;
    throw error;
  }
}

export interface Streams {
  readonly input: Readable;
  readonly output: Writable;
  readonly write: WritePart;
  /** Who the MCP host is, whatever it calls itself. */
  readonly host?: string | undefined;
  /** The client's working folder, as it said. */
  readonly folder?: unknown;
  /** At the other end is a front of ours, which goes on with another daemon when this one hangs up. */
  readonly isFront?: boolean;
  /** Aborted when the server is about to leave: a connection on which nobody waits for an answer is closed then. */
  readonly leaving?: AbortSignal;
}

/** One MCP connection over a pair of streams; resolves when the client has closed it. */
export async function serveStreams(runtime: Runtime, streams: Streams): Promise<void> {
  const { LineTransport } = await import("./transport/stdio.ts");
  const { log, clock, serving } = runtime;
  const isAskedAgain = (method: string) => streams.isFront === true && method === "tasks/result";
  const lines = new LineTransport({ ...streams, isAskedAgain, clock, log });
  const conversation = new Conversation(serving.served, {
    caller: localUser,
    door: "stdio",
    way: lines,
    hostName: streams.host,
    folder: toWorkingFolder(streams.folder),
    isFront: streams.isFront === true,
    firstId: createFirstNumber(),
  });
  serving.conversations.add(conversation);
  const onLeaving = () => lines.closeWhenIdle();
  streams.leaving?.addEventListener("abort", onLeaving);
  // It may have been decided while this was being put together.
  if (streams.leaving?.aborted === true) onLeaving();
  await new Promise<void>((resolve) => {
    lines.onMessage = (message) => conversation.receive(message);
    lines.onError = (error) => log.debug(`mcp: ${error.message}`);
    lines.onClose = () => {
      conversation.close();
      resolve();
    };
    lines.start();
  });
  serving.conversations.delete(conversation);
  streams.leaving?.removeEventListener("abort", onLeaving);
}

/** Opens the HTTP door on a runtime. */
export async function serveRuntimeOverHttp(runtime: Runtime): Promise<HttpDoor> {
  const { settings, serving, clock, log } = runtime;
  const { serveHttp } = await import("./transport/http/http-door.ts");
  return await serveHttp({
    serving,
    host: settings.http.host,
    port: settings.http.port,
    token: runtime.token(),
    allowAnonymous: settings.http.allowAnonymous,
    hasRoom: system.hasDescriptorsLeft,
    clock,
    log,
  });
}

/** The author's own copy of the SDK, or what lies beside us. */
async function loadSdk({ configFile = "" }: Settings): Promise<Sdk> {
  const name = "@modelcontextprotocol/server";
  try {
    const [{ McpServer }, { serveStdio }] = (await Promise.all([
      loadAsOf(configFile, name),
      loadAsOf(configFile, `${name}/stdio`),
    ] as Promise<Sdk>[])) as [Sdk, Sdk];
    return { McpServer, serveStdio };
  } catch (cause) {
    throw new RuntimeError(
      "CONFIG_INVALID",
      `The \`mcp\` hook of ${configFile} needs ${name}; install it in the project: npm install ${name}`,
      {
        cause,
        forClients: `This server's \`mcp\` hook needs ${name}, which is not installed; whoever runs it can: npm install ${name}`,
      },
    );
  }
}

/** Written aside and linked into place, so that nobody ever reads half of it, and the first of two makers wins. */
function makeToken(home: Home): void {
  const aside = `${home.tokenFile}.${createId()}`;
  writeFileSync(aside, `${createSecret()}\n`, { mode: 0o600, flag: "wx" });
  try {
    linkSync(aside, home.tokenFile);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(aside);
  }
}

/** The home's own secret, made at first use and readable by its user alone. */
export function readToken(home: Home): string {
  try {
    ensureHome(home);
    if (!existsSync(home.tokenFile)) makeToken(home);
    const token = readFileSync(home.tokenFile, "utf8").trim();
    if (token.length < 32) throw new Error(`${home.tokenFile} holds no token; delete it, and a new one is made`);
    return token;
  } catch (cause) {
    throw new RuntimeError(
      "HOME_UNUSABLE",
      `Cannot use the home folder ${home.folder}: ${messageOf(cause)}; set MEANWHILE_HOME to a folder you may write.`,
      {
        cause,
      },
    );
  }
}
