import { AsyncLocalStorage } from "node:async_hooks";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { modernRevision } from "../../src/wire/revisions.ts";
import type { TransportName } from "./clients.ts";
import { cleanUp, temporaryFolder } from "./home.ts";
import { serveHttpHere, servePipesHere } from "./in-process.ts";
import { codeCache, executable, quickStart, type Started, startHttp, startMeanwhile, waitFor } from "./meanwhile.ts";
import { type Fields, type Link, overHttp, overStreams, PipeClient, WireClient, type WireOptions } from "./wire.ts";

/** Servers for clients that write their messages by hand, and what such clients do with tasks. */

export interface PlaceOptions {
  readonly commands: string;
  /** The project's meanwhile.config.json. */
  readonly config?: Fields;
  readonly home?: string;
  readonly env?: Record<string, string>;
  /** Servers have processes of their own, and can be killed. */
  readonly isApart?: boolean;
}

/** A home and a project on which servers can be started, one after the other or several at once. */
export interface Place {
  readonly home: string;
  readonly token: () => string;
  readonly local: () => { authorization: string };
  startHttp(): Promise<Started & { readonly url: string }>;
  /** A server of its own on a pipe. */
  startPipe(revision: string, capabilities?: object): Promise<PipeClient>;
}

export function openPlace({
  commands,
  config,
  home = temporaryFolder(),
  env = {},
  isApart = false,
}: PlaceOptions): Place {
  const cwd = temporaryFolder();
  if (config !== undefined) writeFileSync(path.join(cwd, "meanwhile.config.json"), JSON.stringify(config));
  const words = ["--no-bundled", "--commands", commands];
  const given = { cwd, env: { ...env, MEANWHILE_HOME: home } };
  const token = () => readFileSync(path.join(home, "token"), "utf8").trim();
  const startPipe = async (): Promise<Started> => {
    if (isApart) return startMeanwhile(["serve", "--in-process", ...words], given);
    const pipes = await servePipesHere(words, given);
    return likeStarted(home, pipes, pipes.left);
  };
  return {
    home,
    token,
    local: () => ({ authorization: `Bearer ${token()}` }),
    startHttp: async () =>
      isApart ? await startHttp(words, given) : { ...likeStarted(home), url: (await serveHttpHere(words, given)).url },
    startPipe: async (revision, capabilities = {}) =>
      await new PipeClient(await startPipe(), { revision, capabilities }).begin(),
  };
}

/** What can be said of a server in this process as if it had its own. */
function likeStarted(home: string, pipes: object = {}, left: Promise<unknown> = new Promise(() => {})): Started {
  const kill = () => {
    throw new Error("This server has no process of its own: openPlace({ isApart: true }) gives it one.");
  };
  const child = { pid: process.pid, exitCode: null, ...pipes, kill } as unknown as Started["child"];
  return { child, home, stdout: () => "", stderr: () => "", exited: left.then(() => 0) };
}

/** A server in this process that clients can be connected to; it is gone after the test. */
export interface Served {
  readonly transport: TransportName;
  readonly home: string;
  /** HTTP alone. */
  readonly url: string;
  /** The home's token, for callers over HTTP who are to be told from others. */
  readonly token: () => string;
  /** How a client starts it by itself, over stdio. */
  readonly process: { command: string; args: string[]; env: Record<string, string>; cwd: string; stderr: "ignore" };
  /** Opens a connection; over stdio that is a server of its own, on the same home, unless pipes are shared. */
  connect(options?: ConnectOptions): Promise<WireClient>;
}

export interface ServeOptions {
  readonly commands: string;
  readonly home?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Over stdio: clients that say the same of themselves share a server, and with it a pipe; since 2026-07-28 all do.
   */
  readonly sharesPipes?: boolean;
}

export interface ConnectOptions extends Partial<WireOptions> {
  /** Over HTTP: without the home's token. */
  readonly isAnonymous?: boolean;
  /** Over HTTP before 2026-07-28: opens no stream for what the server sends by itself. */
  readonly hasNoStream?: boolean;
}

interface SharedPipe {
  readonly link: Link;
  initialized?: Promise<Fields>;
}

export async function serve(transport: TransportName, options: ServeOptions): Promise<Served> {
  const { commands, home = temporaryFolder(), cwd = temporaryFolder() } = options;
  const words = ["--no-bundled", "--commands", commands];
  const env = { ...options.env, MEANWHILE_HOME: home };
  const { url } = transport === "HTTP" ? await serveHttpHere(words, { cwd, env }) : { url: "" };
  const token = () => readFileSync(path.join(home, "token"), "utf8").trim();
  const openPipe = async () => {
    const { stdin, stdout, close } = await servePipesHere(words, { cwd, env });
    return overStreams(stdin, stdout, close);
  };
  // A shared process lives as long as what it was asked for here, not as long as the test that is the first to use it.
  const inScope = AsyncLocalStorage.snapshot();
  const shared = new Map<string, Promise<SharedPipe>>();
  const connectPipe = async (wish: ConnectOptions, about: WireOptions): Promise<WireClient> => {
    if (options.sharesPipes !== true) return await new WireClient(await openPipe(), about).begin();
    const key = wish.revision === modernRevision ? modernRevision : JSON.stringify(wish);
    const opening = shared.get(key) ?? inScope(async (): Promise<SharedPipe> => ({ link: await openPipe() }));
    shared.set(key, opening);
    const pipe = await opening;
    const client = new WireClient(pipe.link, about);
    // Hands are shaken with the first.
    pipe.initialized ??= client.begin().then(({ initialized }) => initialized);
    client.initialized = await pipe.initialized;
    return client;
  };
  return {
    transport,
    home,
    url,
    token,
    process: {
      command: process.execPath,
      args: [quickStart, executable, "serve", "--in-process", ...words],
      env: { ...(process.env as Record<string, string>), NODE_COMPILE_CACHE: codeCache, ...env },
      cwd,
      stderr: "ignore",
    },
    async connect({ isAnonymous = false, hasNoStream = false, ...wish } = {}) {
      const about = { revision: "2025-11-25", ...wish };
      if (transport === "stdio") return await connectPipe(wish, about);
      const link = overHttp(url, isAnonymous ? {} : { token: token() });
      cleanUp(() => link.close());
      const client = await new WireClient(link, about).begin();
      if (about.revision !== modernRevision && !hasNoStream) await client.openStream();
      return client;
    },
  };
}

/** Starts a command as a task, in the way of the client's revision; the task's id, and all that the handle says. */
export async function startTask(
  client: WireClient,
  name: string,
  input: Fields = {},
  more: Fields = {},
): Promise<{ readonly taskId: string; readonly task: Fields }> {
  const asked = client.revision === modernRevision ? {} : { task: {} };
  const answer = await client.request("tools/call", { name, arguments: input, ...asked, ...more });
  const task = answer.result?.task ?? (answer.result?.resultType === "task" ? answer.result : undefined);
  if (typeof task?.taskId !== "string")
    throw new Error(`${name} gave no task: ${JSON.stringify(answer.result ?? answer.error)}`);
  return { taskId: task.taskId as string, task };
}

export const isEnded = ({ status }: Fields) => status === "completed" || status === "failed" || status === "cancelled";

/** Looks at a task until it is as wanted. */
export async function taskWhen(
  client: WireClient,
  taskId: string,
  isRight: (task: Fields) => boolean,
  guardMs?: number,
): Promise<Fields> {
  return await waitFor(
    async () => {
      const { result } = await client.request("tasks/get", { taskId });
      return result !== undefined && isRight(result) ? result : undefined;
    },
    undefined,
    guardMs,
  );
}

/** A file that a command leaves its traces in, and the gate it waits at. */
export interface Traces {
  readonly file: string;
  readonly lines: () => string[];
  /** Resolves once such a line is there. */
  readonly shows: (start: string) => Promise<string>;
  /** Lets the command go on. */
  readonly release: () => void;
}

export function openTraces(): Traces {
  const file = path.join(temporaryFolder(), "traces.txt");
  const lines = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []);
  return {
    file,
    lines,
    shows: (start) =>
      waitFor(
        () => lines().find((line) => line.startsWith(start)),
        () => `no trace of «${start}»: ${lines().join(" | ")}`,
      ),
    release: () => writeFileSync(`${file}.go`, ""),
  };
}
