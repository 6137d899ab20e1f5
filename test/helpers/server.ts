import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import path from "node:path";
import { PassThrough, type Readable, type Writable } from "node:stream";
import { createAuthenticator } from "../../src/auth/authenticate.ts";
import type { Authentication } from "../../src/auth/authentication.ts";
import { systemClock } from "../../src/clock.ts";
import { type Caller, localKeyOf } from "../../src/command/caller.ts";
import { fixedSource } from "../../src/command/code-source.ts";
import type { Command } from "../../src/command/command.ts";
import type { CommandSource } from "../../src/command/source.ts";
import { type Logger, silentLog } from "../../src/log.ts";
import { packageFolder } from "../../src/paths.ts";
import { openServedFolders } from "../../src/project/project-commands.ts";
import type { Wrap } from "../../src/project/wrap.ts";
import { readToken } from "../../src/runtime/home-token.ts";
import { openRuntime, type Runtime } from "../../src/runtime/runtime.ts";
import { serveStreams } from "../../src/serve.ts";
import { loadSettings, type Settings } from "../../src/settings/settings.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import type { Store } from "../../src/store/open.ts";
import type { Engine } from "../../src/task/engine.ts";
import { serveHttp } from "../../src/transport/http/http-door.ts";
import { isModern, legacyRevision, modernRevision } from "../../src/wire/revisions.ts";
import { DaemonHomeHere } from "./daemon-here.ts";
import { writeEmptyDatabase } from "./empty-database.ts";
import { type FakeClock, settled } from "./fake-clock.ts";
import { cleanUp, temporaryFolder, writeFiles } from "./home.ts";
import { killNine, type Started, startHttp, startMeanwhile } from "./meanwhile.ts";
import { type Link, overHttp, overPipes, overStreams, takesTasks, WireClient, type WireOptions } from "./wire.ts";

export type Transport = "stdio" | "http";

/** The ID of the homes that `openServer` makes. */
const testHomeId = "home-of-the-tests-in-this-process";
/** What the tasks of the local user of such a home are kept under. */
export const localKey = localKeyOf(testHomeId);

/**
 * Where the server runs.
 * - `memory`: in the test's process. Clients are connected by linked streams.
 * - `http`: in the test's process. Clients are connected by HTTP on 127.0.0.1.
 * - `daemon`: in the test's process, behind a daemon. Clients are connected by stdio proxies.
 * - `process`: `bin/meanwhile.cjs` in child processes, in test/system only. Each stdio client has its own child process;
 *   all HTTP clients share one.
 */
export type Place = keyof Places;

interface ServerOptions {
  /** Command files below these folders, or commands by their tool names. Default: none. */
  readonly commands?: string | readonly string[] | Readonly<Record<string, Command>>;
  /** The project's `meanwhile.config.json`. */
  readonly config?: object;
  readonly home?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface LocalOptions extends ServerOptions {
  /** Default: the system's clock. With a fake clock, `client` and `close` advance it while they wait. */
  readonly clock?: FakeClock;
  /** `sqlite`: the database of the home. Default: a new store in memory. */
  readonly store?: Store | "sqlite";
  /** See `RuntimeParts`. Default: true for clients over stdio, unless the clock is a test's: loading takes real time. */
  readonly loadsLate?: boolean;
  /** The commands of the project's folder in place of `commands`, without the bundled ones or with them. */
  readonly projectCommands?: "alone" | "with bundled";
  /** What `meanwhile wrap` gets, in place of `commands`. */
  readonly wrap?: Wrap;
  /** In place of what the config and the environment say. */
  readonly settings?: Partial<Settings>;
  readonly log?: Logger;
  /** Over HTTP: identifies callers by their requests. Undefined: by the credential of the request. */
  readonly identify?: (request: IncomingMessage) => Caller | Authentication | undefined;
}

/** What a client is able to do with a call that takes long. Revisions stand for a client that declares nothing. */
export const dialects = {
  plain: { revision: "2025-06-18", capabilities: {} },
  jobs: { revision: legacyRevision, capabilities: { experimental: { "meanwhile/jobs": {} } } },
  "tasks-2025": { revision: legacyRevision, capabilities: {} },
  "tasks-2026": { revision: modernRevision, capabilities: takesTasks },
  "2024-11-05": { revision: "2024-11-05", capabilities: {} },
  "2025-03-26": { revision: "2025-03-26", capabilities: {} },
  "2025-06-18": { revision: "2025-06-18", capabilities: {} },
  "2025-11-25": { revision: "2025-11-25", capabilities: {} },
  "2026-07-28": { revision: "2026-07-28", capabilities: {} },
} as const satisfies Readonly<Record<string, WireOptions>>;

type Dialect = keyof typeof dialects;

export interface ClientOptions extends Partial<WireOptions> {
  /** Default: the transport of the server's place. */
  readonly over?: Transport;
  /** Over HTTP: sent with each request in place of the home's token. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Over HTTP: sends no token. */
  readonly isAnonymous?: boolean;
  /** Over HTTP before 2026-07-28: opens no GET stream. */
  readonly hasNoStream?: boolean;
}

/** The place in the test's process for each transport. */
export const placeOf = { stdio: "memory", HTTP: "http" } as const;

/** A pair of streams that end at the server. */
export interface Pipes {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Ends the input, and resolves when the server has closed the connection. */
  close(): Promise<void>;
}

/** How a client reaches the server. */
export type Target =
  | { readonly pipes: Pipes }
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> }
  | { readonly words: readonly string[]; readonly cwd: string; readonly env: Readonly<Record<string, string>> };

export interface TestServer {
  readonly home: string;
  readonly cwd: string;
  /** The token of the home. */
  token(): string;
  /** The address of its HTTP endpoint; listens when it is first asked for. */
  url(): Promise<string>;
  /** A connected client, which is closed after the test. */
  client(dialect: Dialect | WireOptions, options?: ClientOptions): Promise<WireClient>;
  /** For other clients than ours. */
  target(options?: Pick<ClientOptions, "over" | "headers" | "isAnonymous">): Promise<Target>;
  /** Stops the server as its owner would. Called after the test too. */
  close(): Promise<void>;
}

/** A server in the test's process. */
export interface LocalServer extends TestServer {
  readonly runtime: Runtime;
  engine(): Promise<Engine>;
  readonly settings: Settings;
  openPipes(): Pipes;
  /** Shuts down as for a SIGTERM, and resolves when the server has ended. Does not advance a fake clock. */
  stop(graceMs: number): Promise<void>;
}

/** A server behind a daemon in the test's process. It has no HTTP endpoint. */
interface DaemonServer extends TestServer {
  readonly daemons: DaemonHomeHere;
}

/** A server in child processes. */
export interface ProcessServer extends TestServer {
  readonly children: readonly Started[];
  /** Ends all of its processes by SIGKILL. */
  kill(): Promise<void>;
}

interface Places {
  readonly memory: { readonly options: LocalOptions; readonly server: LocalServer };
  readonly http: { readonly options: LocalOptions; readonly server: LocalServer };
  readonly daemon: { readonly options: ServerOptions & Pick<LocalOptions, "clock">; readonly server: DaemonServer };
  readonly process: { readonly options: ServerOptions; readonly server: ProcessServer };
}

/**
 * Opens a server, which is closed after the test. To open another server on the same home, close the first or give both
 * `store: "sqlite"`, and pass `home` and `cwd`.
 */
export async function openServer<P extends Place>(
  options: { readonly in: P } & Places[P]["options"],
): Promise<Places[P]["server"]> {
  const { home = writeFiles(temporaryFolder(), { "home-id": testHomeId }), cwd = temporaryFolder(), config } = options;
  if (config !== undefined) writeFiles(cwd, { "meanwhile.config.json": JSON.stringify(config) });
  return await openers[options.in]({ ...options, home, cwd });
}

/** The places. */
const openers: { readonly [P in Place]: (options: Places[P]["options"] & Folders) => Promise<Places[P]["server"]> } = {
  memory: (options) => openLocal(options, "stdio"),
  http: (options) => openLocal(options, "http"),
  daemon: openDaemon,
  process: openProcess,
};

interface Folders {
  readonly home: string;
  readonly cwd: string;
}

async function openLocal(options: LocalOptions & Folders, usual: Transport): Promise<LocalServer> {
  const { home, cwd, env = {}, clock, store = new MemoryStore(clock ?? systemClock), identify } = options;
  const settings = {
    ...(await loadSettings({
      cwd,
      env: { ...process.env, MEANWHILE_HOME: home, ...env },
      flags: { ...commandFlags(options), allowAnonymous: true, port: 0 },
    })),
    ...options.settings,
  };
  const file = path.join(home, "tasks.db");
  if (store === "sqlite" && settings.store === file) await writeEmptyDatabase(file);
  const runtime = await openRuntime(settings, {
    log: options.log ?? silentLog,
    loadsLate: options.loadsLate ?? (usual === "stdio" && clock === undefined),
    ...(clock !== undefined && { clock }),
    ...(store !== "sqlite" && { store }),
    ...(await sourcesOf(options, settings)),
  });
  // A database that cannot be opened is for the requests to tell.
  const opened = runtime.tasks.start().then(async () => (await runtime.tasks.calls()).engine);
  await opened.catch(() => undefined);
  const wait = <T>(promise: Promise<T>, stepMs?: number) =>
    clock === undefined ? promise : settled(clock, promise, stepMs);
  const { serving, log } = runtime;
  const token = () => readToken(settings.home);
  let http: ReturnType<typeof serveHttp> | undefined;
  const url = async () => {
    const authenticate = createAuthenticator({
      homeToken: runtime.token,
      localUser: runtime.localUser,
      allowAnonymous: settings.http.allowAnonymous,
    });
    http ??= serveHttp({
      serving,
      clock: runtime.clock,
      log,
      host: "127.0.0.1",
      port: 0,
      authenticate(credentials, request) {
        const found = identify?.(request) ?? authenticate(credentials);
        return "kind" in found ? { caller: found } : found;
      },
    });
    return (await http).url;
  };
  const openPipes = (): Pipes => {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    const served = serveStreams(runtime, {
      input: stdin,
      output: stdout,
      write: (text, onWritten) => stdout.write(text, onWritten),
      folder: cwd,
    });
    const close = async () => {
      stdin.end();
      await served;
    };
    return { stdin, stdout, close };
  };
  let closing: Promise<void> | undefined;
  const stop = (graceMs: number) => (closing ??= runtime.close(graceMs).then(async () => await (await http)?.close()));
  const close = async () => await wait(stop(0), 1_000);
  cleanUp(close);
  const facts = { home, cwd, token, url, close };
  const target = async ({ over = usual, ...who }: ClientOptions = {}): Promise<Target> =>
    over === "stdio" ? { pipes: openPipes() } : { url: await url(), headers: headersOf(who, token) };
  return {
    ...facts,
    target,
    runtime,
    settings,
    openPipes,
    stop,
    client: connecting(target, { wait }),
    engine: () => opened,
  };
}

async function openDaemon(options: Places["daemon"]["options"] & Folders): Promise<DaemonServer> {
  const { home, cwd, env = {}, clock, commands = {} } = options;
  const folders = foldersOf(options);
  const words = ["--no-bundled", ...folders.flatMap((folder) => ["--commands", folder])];
  const daemons = new DaemonHomeHere({
    ...{ home, cwd, env },
    parts: {
      ...(clock !== undefined && { clock, loadsLate: false }),
      ...(folders.length === 0 && { sources: [toSource(commands as Readonly<Record<string, Command>>)] }),
    },
  });
  await writeEmptyDatabase(path.join(home, "tasks.db"));
  const wait = <T>(promise: Promise<T>) => (clock === undefined ? promise : settled(clock, promise));
  const url = () => Promise.reject(new Error("A daemon has no HTTP endpoint."));
  const target = async ({ over = "stdio" }: ClientOptions = {}): Promise<Target> =>
    over === "stdio" ? { pipes: daemons.openProxy({ words }) } : await url();
  return {
    ...{ home, cwd, url, target, daemons },
    token: () => readFileSync(path.join(home, "token"), "utf8").trim(),
    client: connecting(target, { wait }),
    async close() {
      await wait(Promise.all(daemons.daemons.map((daemon) => daemon.stop({ isNow: true }))));
    },
  };
}

async function openProcess(options: ServerOptions & Folders): Promise<ProcessServer> {
  const { home, cwd } = options;
  const words = ["--no-bundled", ...foldersOf(options).flatMap((folder) => ["--commands", folder])];
  const env = { ...options.env, MEANWHILE_HOME: home };
  const children: Started[] = [];
  let http: ReturnType<typeof startHttp> | undefined;
  const url = async () => {
    http ??= startHttp(words, { cwd, env });
    const started = await http;
    if (!children.includes(started)) children.push(started);
    return started.url;
  };
  const token = () => readFileSync(path.join(home, "token"), "utf8").trim();
  const target = async ({ over = "stdio", ...who }: ClientOptions = {}): Promise<Target> =>
    over === "stdio"
      ? { words: ["serve", "--in-process", ...words], cwd, env }
      : { url: await url(), headers: headersOf(who, token) };
  const start = (line: readonly string[]) => {
    const started = startMeanwhile(line, { cwd, env });
    children.push(started);
    return started;
  };
  return {
    ...{ home, cwd, token, url, target, children },
    client: connecting(target, { start }),
    async kill() {
      await Promise.all(children.map(killNine));
    },
    async close() {
      for (const { child } of children) child.kill("SIGTERM");
      await Promise.all(children.map(({ exited }) => exited));
    },
  };
}

/** Connects a client to what `target` says. */
function connecting(
  target: (options: ClientOptions) => Promise<Target>,
  {
    wait = (promise) => promise,
    start,
  }: { wait?: <T>(promise: Promise<T>) => Promise<T>; start?: (words: readonly string[]) => Started },
): TestServer["client"] {
  return async (dialect, options = {}) => {
    const wire = typeof dialect === "string" ? dialects[dialect] : dialect;
    const { name, revision, capabilities } = { name: "scenario", capabilities: {}, ...wire, ...options };
    const link = linkTo(await target(options), start);
    const client = new WireClient(link, { name, revision, capabilities });
    cleanUp(() => wait(client.close()));
    await wait(client.begin());
    if (link.door === "http" && !isModern(revision) && options.hasNoStream !== true) await client.openStream();
    return client;
  };
}

function linkTo(target: Target, start: ((words: readonly string[]) => Started) | undefined): Link {
  if ("pipes" in target) return overStreams(target.pipes.stdin, target.pipes.stdout, () => target.pipes.close());
  if ("url" in target) return overHttp(target.url, { headers: target.headers ?? {} });
  if (start === undefined) throw new Error("This server starts no processes.");
  return overPipes(start(target.words).child);
}

function headersOf({ headers, isAnonymous }: ClientOptions, token: () => string): Readonly<Record<string, string>> {
  return headers ?? (isAnonymous === true ? {} : { authorization: `Bearer ${token()}` });
}

function foldersOf({ commands = [] }: ServerOptions): readonly string[] {
  if (typeof commands === "string") return [commands];
  return Array.isArray(commands) ? commands : [];
}

/** Catalogs of folders that do not change while tests run, by their folders and tool prefix. */
const catalogs = new Map<string, Promise<CommandSource>>();
const repository = path.resolve(packageFolder());

function commandFlags({ projectCommands, wrap, ...options }: LocalOptions) {
  if (wrap !== undefined) return { wrap };
  if (projectCommands === "with bundled") return {};
  return { bundled: false, ...(projectCommands === undefined && { commands: foldersOf(options) }) };
}

/** Commands from code, or from the repository's own folders, loaded once. Other folders are loaded by the server. */
async function sourcesOf(
  { commands = {}, projectCommands, wrap }: LocalOptions,
  settings: Settings,
): Promise<{ readonly sources?: readonly CommandSource[] }> {
  if (projectCommands !== undefined || wrap !== undefined) return {};
  const folders = foldersOf({ commands });
  if (folders.length === 0) return { sources: [toSource(commands as Readonly<Record<string, Command>>)] };
  if (!folders.every((folder) => path.resolve(folder).startsWith(`${repository}${path.sep}`))) return {};
  const key = JSON.stringify([folders, settings.toolPrefix]);
  const known = catalogs.get(key) ?? loadOnce(settings);
  catalogs.set(key, known);
  return { sources: [await known] };
}

async function loadOnce(settings: Settings): Promise<CommandSource> {
  const source = await openServedFolders(settings, { clock: systemClock, log: silentLog });
  source.close();
  return { ...fixedSource(source.name, source.entries), problems: source.problems };
}

/** Commands by their tool names. */
function toSource(commands: Readonly<Record<string, Command>>): CommandSource {
  const entries = Object.entries(commands).map(([toolName, command]) => {
    return { toolName, path: toolName.split("_"), file: "", command };
  });
  return fixedSource("the commands of the test", entries);
}
