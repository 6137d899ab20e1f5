import { existsSync, linkSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import type { McpServerFactory, ServerCapabilities } from "@modelcontextprotocol/server";
import { type Clock, systemClock } from "./clock.ts";
import { type Catalog, openLiveCatalog, withoutBundled } from "./command/catalog.ts";
import { watchLoop } from "./command/loop-watch.ts";
import type { Settings } from "./config.ts";
import { isStoreError, messageOf, RuntimeError } from "./errors.ts";
import { createFirstNumber, createId, createSecret } from "./ids.ts";
import type { Logger } from "./log.ts";
import { hasDescriptorsLeft } from "./machine.ts";
import { anonymous, callerKey, fromAuthInfo, isKnown, localUser } from "./mcp/caller.ts";
import { createCompletions } from "./mcp/completions.ts";
import { PipeConnection } from "./mcp/connection.ts";
import type { ListName } from "./mcp/listening.ts";
import { PlainRoad } from "./mcp/plain.ts";
import { PollLimit } from "./mcp/poll-limit.ts";
import { createPrompts } from "./mcp/prompts.ts";
import { RequestStates } from "./mcp/questions.ts";
import type { Connection } from "./mcp/request.ts";
import { createResources } from "./mcp/resources.ts";
import { createRouter, type Router } from "./mcp/router.ts";
import { CommandServer } from "./mcp/server.ts";
import { TaskListenTransport, TaskSubscriptions } from "./mcp/subscriptions.ts";
import { Tasks2025, tasksCapability } from "./mcp/tasks-2025.ts";
import { createTasks2026 } from "./mcp/tasks-2026.ts";
import { createTools } from "./mcp/tools.ts";
import { ensureHome, type Home, toWorkingFolder } from "./paths.ts";
import { servedCatalog, unknownLongTools } from "./project-commands.ts";
import { servedFolders } from "./stored-project.ts";
import type { Engine } from "./task/engine.ts";
import type { CommandStats } from "./task/history.ts";
import { type Environment, isTerminal, liveStatuses } from "./task/task.ts";
import { ProgressTokens } from "./task/tokens.ts";
import type { Worker } from "./task/worker.ts";
import type { Tasks, TasksOptions } from "./tasks.ts";
import type { HttpDoor } from "./transport/http.ts";
import type { WritePart } from "./transport/outbox.ts";
import type { Message } from "./wire/message.ts";
import { tasksExtension } from "./wire/revisions.ts";

/** Calls that somebody waits for, and tasks. */
export interface Running {
  readonly calls: number;
  readonly tasks: number;
}

/** Catalog, tools, tasks and the SDK's servers put together; doors are opened on it. */
export interface Runtime {
  readonly settings: Settings;
  readonly catalog: Catalog;
  readonly factory: McpServerFactory;
  /** What the local user's methods are answered by. */
  readonly router: Router;
  readonly createTasks2025: (connection: Connection) => Tasks2025;
  readonly lists: readonly ListName[];
  readonly subscriptions: TaskSubscriptions;
  readonly clock: Clock;
  readonly log: Logger;
  /** The home's own secret; made where there is none. */
  token(): string;
  /** Throws when the database of tasks cannot be used. */
  checkStore(): Promise<void>;
  /** Begins to work on what is queued, as soon as its database can be used. Done by the first call that needs it, where nobody does it before. */
  startTasks(): Promise<void>;
  /** Whether tasks of this project are queued, run or wait for an answer. */
  hasLiveTasks(): Promise<boolean>;
  /** What this process works on right now. */
  running(): Running;
  /** Hands out calls, gives back what is safe to run again, and lets the rest go on for this long; how many tasks nobody works on then. */
  close(graceMs: number): Promise<{ readonly waiting: number }>;
}

export interface RuntimeOptions {
  readonly clock?: Clock;
  /** Asked before changed commands are loaded; see `LiveCatalogOptions`. */
  readonly mayReload?: (folders: readonly string[]) => boolean;
  /** What this process has of the variables that the project's code reads. Default: what the settings say. */
  readonly environment?: () => Environment;
  /** Hears which commands run, as long as the event loop turns. */
  readonly onCommands?: (names: readonly string[]) => void;
}

export async function openRuntime(settings: Settings, log: Logger, options: RuntimeOptions = {}): Promise<Runtime> {
  const { clock = systemClock, mayReload, environment } = options;
  const live = { clock, isServed: servedFolders(settings), ...(mayReload !== undefined && { mayReload }) };
  const catalog = await openLiveCatalog({ ...servedCatalog(settings, log), ...live });
  const unknown = unknownLongTools(settings.deferral.tools, catalog);
  if (unknown !== undefined) log.warn(unknown);
  const served = new ServedTasks(settings, catalog, log, { clock, ...(environment !== undefined && { environment }) });
  const { isDebug, toolPrefix } = settings;
  const openEngine = async () => await served.engine();
  const common = { openEngine, find: (name: string) => catalog.get(name)?.command, clock, log, isDebug, polls: new PollLimit(clock) };
  const plain = settings.followUpTools ? new PlainRoad({ ...common, toolPrefix }) : undefined;
  const readStats = () => served.stats();
  // Read once: a home that was moved away is not made anew for the sake of its token.
  let known: string | undefined;
  const token = () => (known ??= readToken(settings.home));
  const shared = {
    ...common,
    openEngine: () => served.engine(),
    readStats,
    parked: new Map(),
    keepInlineMs: settings.deferral.keepInlineMs,
    states: new RequestStates(clock, token),
    tokens: new ProgressTokens(clock),
    plain,
    hosts: settings.hosts,
    hostName: settings.hostName,
  };
  // A server is made for one caller, so whatever it lists, calls, completes or suggests comes from the catalog of that caller.
  const partsFrom = (visible: Catalog, readVisible: typeof readStats) => ({
    tools: createTools({ ...shared, catalog: visible }),
    resources: createResources(readVisible),
    prompts: settings.prompts ? createPrompts(visible) : undefined,
    completions: createCompletions({ catalog: visible, hasPrompts: settings.prompts, openEngine }),
  });
  const forStrangers = withoutBundled(catalog);
  const readForStrangers = async () => (await readStats()).filter(({ command }) => forStrangers.get(command) !== undefined);
  const [parts, partsForStrangers] = [partsFrom(catalog, readStats), partsFrom(forStrangers, readForStrangers)];
  const tasks2026 = createTasks2026(common);
  const createTasks2025 = (connection: Connection) => new Tasks2025(connection, { ...common, errorsAsCompleted: settings.errorsAsCompleted });
  const factory: McpServerFactory = async ({ era, authInfo, requestInfo }) => {
    const caller = fromAuthInfo(authInfo) ?? (requestInfo === undefined ? localUser : anonymous);
    const capabilities = era === "modern" ? { extensions: { [tasksExtension]: {} } } : { tasks: tasksCapability(caller) };
    const server = new CommandServer(settings, {
      ...(isKnown(caller) ? parts : partsForStrangers),
      capabilities: capabilities as ServerCapabilities,
    });
    try {
      await settings.mcp?.(server, { era });
    } catch (error) {
      log.error("the `mcp` hook of the config file failed, so no client can be served", { error });
      throw error;
    }
    server.serveAll();
    if (era === "modern") server.serve(tasks2026);
    else {
      server.tasks2025 = createTasks2025(server);
      server.serve(server.tasks2025.methods(caller));
    }
    return server;
  };
  const stopWatching = watchLoop(clock, log, options.onCommands);
  const close = async (graceMs: number) => {
    stopWatching();
    catalog.close();
    return { waiting: await served.close(graceMs) };
  };
  return {
    settings,
    catalog,
    factory,
    router: createRouter({ ...parts, facts: settings, tasks2026 }),
    createTasks2025,
    lists: settings.prompts ? ["tools", "prompts"] : ["tools"],
    subscriptions: new TaskSubscriptions(common),
    clock,
    log,
    token,
    checkStore: () => served.checkStore(),
    startTasks: async () => void (await openEngine()),
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
  #working: Engine | undefined;
  #worker: Worker | undefined;

  constructor(settings: Settings, catalog: Catalog, log: Logger, options: TasksOptions) {
    this.#settings = settings;
    this.#catalog = catalog;
    this.#log = log;
    this.#options = options;
  }

  /** For requests: from the first one on, this process works on what is queued. */
  engine(): Engine | Promise<Engine> {
    return this.#working ?? this.#start();
  }

  async #start(): Promise<Engine> {
    const { tasks, worker } = await this.#open();
    worker.start();
    tasks.sweeper.start();
    this.#working = tasks.engine;
    this.#worker = worker;
    return tasks.engine;
  }

  get running(): Running {
    return this.#worker?.running ?? { calls: 0, tasks: 0 };
  }

  async checkStore(): Promise<void> {
    (await this.#open()).tasks.checkStore();
  }

  async hasLive(): Promise<boolean> {
    if (this.running.tasks > 0) return true;
    if (this.#opened === undefined && !existsSync(this.#settings.storeFile)) return false;
    const { tasks } = await this.#open();
    // Nobody stays for what cannot be read.
    return await withoutStore(() => tasks.engine.hasOwn(callerKey(localUser), { statuses: liveStatuses, withCalls: true }), false);
  }

  /** How long commands take; nothing is opened for a home that has no tasks yet. */
  async stats(): Promise<readonly CommandStats[]> {
    if (this.#opened === undefined && !existsSync(this.#settings.storeFile)) return [];
    const { tasks } = await this.#open();
    return await tasks.history.stats();
  }

  /** How many of this project's tasks wait for the next process. */
  async close(graceMs: number): Promise<number> {
    const opened = await this.#opened?.catch(() => undefined);
    if (opened === undefined) return 0;
    const { tasks, worker } = opened;
    tasks.sweeper.stop();
    await worker.stop(graceMs);
    const { project } = this.#settings;
    const list = async () => (await tasks.engine.list(callerKey(localUser), { project, statuses: liveStatuses })).tasks;
    const live = await withoutStore(list, []);
    await tasks.close();
    return live.filter((task) => !isTerminal(task) && task.lease === undefined).length;
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
    const { openTasks } = await import("./tasks.ts");
    const tasks = openTasks(this.#settings, this.#log, { ...this.#options, isPatient: true });
    const worker = tasks.createWorker((name) => this.#catalog.get(name));
    tasks.engine.runCallsOn(worker);
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
  if (runtime.settings.mcp === undefined) return await servePipe(runtime, streams);
  const [{ serveStdio }, { LineTransport }] = await Promise.all([import("@modelcontextprotocol/server/stdio"), import("./transport/stdio.ts")]);
  const { log, clock, catalog, subscriptions } = runtime;
  const servers = new Set<CommandServer>();
  const factory: McpServerFactory = async (facts) => {
    const server = (await runtime.factory(facts)) as CommandServer;
    server.hostName = streams.host;
    server.folder = toWorkingFolder(streams.folder);
    server.isFront = streams.isFront === true;
    server.outbound = lines;
    server.core.numberFrom(createFirstNumber());
    servers.add(server);
    return server;
  };
  const stopListening = catalog.onChange(() => {
    for (const server of servers) if (server.isConnected()) server.sendListsChanged();
  });
  const isAskedAgain = (method: string) => streams.isFront === true && method === "tasks/result";
  const lines = new LineTransport({ ...streams, isAskedAgain, clock, log });
  const onLeaving = () => lines.closeWhenIdle();
  streams.leaving?.addEventListener("abort", onLeaving);
  // It may have been decided while this was being put together.
  if (streams.leaving?.aborted === true) onLeaving();
  const transport = new TaskListenTransport(lines, subscriptions);
  await new Promise<void>((resolve) => {
    serveStdio(factory, { transport, onerror: (error) => log.debug(`mcp: ${error.message}`) });
    const closeConnection = transport.onclose;
    transport.onclose = () => {
      closeConnection?.();
      resolve();
    };
  });
  stopListening();
  streams.leaving?.removeEventListener("abort", onLeaving);
}

/** The same on our own wire, where an author has registered nothing by hand. */
async function servePipe(runtime: Runtime, streams: Streams): Promise<void> {
  const { LineTransport } = await import("./transport/stdio.ts");
  const { log, catalog, clock } = runtime;
  const isAskedAgain = (method: string) => streams.isFront === true && method === "tasks/result";
  const lines = new LineTransport({ ...streams, isAskedAgain, clock, log });
  const connection = new PipeConnection({
    router: runtime.router,
    channel: { outbound: lines, send: (message) => void lines.send({ jsonrpc: "2.0", ...message } as never).catch(() => undefined) },
    caller: localUser,
    clock,
    log,
    hostName: streams.host,
    folder: toWorkingFolder(streams.folder),
    isFront: streams.isFront === true,
    firstId: createFirstNumber(),
    createTasks2025: runtime.createTasks2025,
    tasks: runtime.subscriptions,
    lists: runtime.lists,
  });
  const stopListening = catalog.onChange(() => connection.sendListsChanged());
  const onLeaving = () => lines.closeWhenIdle();
  streams.leaving?.addEventListener("abort", onLeaving);
  // It may have been decided while this was being put together.
  if (streams.leaving?.aborted === true) onLeaving();
  await new Promise<void>((resolve) => {
    lines.onmessage = (message) => connection.receive(message as Message);
    lines.onerror = (error) => log.debug(`mcp: ${error.message}`);
    lines.onclose = () => {
      connection.close();
      resolve();
    };
    void lines.start();
  });
  stopListening();
  streams.leaving?.removeEventListener("abort", onLeaving);
}

/** Opens the HTTP door on a runtime. */
export async function serveRuntimeOverHttp(runtime: Runtime): Promise<HttpDoor> {
  const { settings, factory, subscriptions, clock, log } = runtime;
  const { serveHttp } = await import("./transport/http.ts");
  const door = await serveHttp({
    factory,
    subscriptions,
    host: settings.http.host,
    port: settings.http.port,
    token: runtime.token(),
    allowAnonymous: settings.http.allowAnonymous,
    hasRoom: hasDescriptorsLeft,
    clock,
    log,
  });
  runtime.catalog.onChange(() => door.notifyListsChanged());
  return door;
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
    throw new RuntimeError("HOME_UNUSABLE", `Cannot use the home folder ${home.folder}: ${messageOf(cause)}; set MEANWHILE_HOME to a folder you may write.`, {
      cause,
    });
  }
}
