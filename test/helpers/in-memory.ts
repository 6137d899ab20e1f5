import { PassThrough } from "node:stream";
import { createMcpHandler, isLegacyRequest, type McpServerFactory, type ServerCapabilities } from "@modelcontextprotocol/server";
import type { Catalog, CatalogEntry } from "../../src/command/catalog.ts";
import type { Command } from "../../src/command/command.ts";
import { silentLog } from "../../src/log.ts";
import { fromAuthInfo, localUser, toAuthInfo } from "../../src/mcp/caller.ts";
import { PlainRoad } from "../../src/mcp/plain.ts";
import { PollLimit } from "../../src/mcp/poll-limit.ts";
import { RequestStates } from "../../src/mcp/questions.ts";
import type { Connection } from "../../src/mcp/request.ts";
import { createResources } from "../../src/mcp/resources.ts";
import { createRouter } from "../../src/mcp/router.ts";
import { CommandServer } from "../../src/mcp/server.ts";
import { TaskSubscriptions } from "../../src/mcp/subscriptions.ts";
import { Tasks2025, tasksCapability } from "../../src/mcp/tasks-2025.ts";
import { createTasks2026 } from "../../src/mcp/tasks-2026.ts";
import { createTools } from "../../src/mcp/tools.ts";
import { type Runtime, serveStreams } from "../../src/serve.ts";
import { openMemoryStore } from "../../src/store/memory.ts";
import { type DeferralRules, defaultDeferral } from "../../src/task/deferral.ts";
import { Engine } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import { Sweeper } from "../../src/task/sweeper.ts";
import { ProgressTokens } from "../../src/task/tokens.ts";
import { Worker } from "../../src/task/worker.ts";
import { Sessions } from "../../src/transport/sessions.ts";
import { tasksExtension } from "../../src/wire/revisions.ts";
import type { FakeClock } from "./fake-clock.ts";
import { type Link, overHttp, overStreams } from "./wire.ts";

/** A whole server in this process whose time we move: what `openRuntime` puts together, on a store in memory. */
export interface InMemoryServer {
  readonly engine: Engine;
  /** Those with a handshake, as they came. */
  readonly connections: readonly Connection[];
  /** Calls that were sent back with a question. */
  readonly parked: ReadonlyMap<string, unknown>;
  /** A connection over a pair of streams; answered by the SDK's server where there is an author's hook. */
  openPipe(options?: { readonly hasHook: boolean }): Link;
  /** The HTTP door without its socket; who calls has the home's token. */
  openHttp(): Link;
  close(): Promise<void>;
}

const facts = { name: "meanwhile", version: "0", instructions: undefined };

export function openInMemory(commands: Readonly<Record<string, Command>>, clock: FakeClock, deferral: DeferralRules = defaultDeferral): InMemoryServer {
  const catalog = toCatalog(commands);
  const store = openMemoryStore(clock);
  const history = new History(store, clock);
  const engine = new Engine({ store, history, clock, log: silentLog, project: "p", deferral });
  const find = (name: string) => catalog.get(name);
  const owner = { project: "p", worker: "w", home: "/", config: {}, isDebug: false };
  const worker = new Worker({ store, dispatcher: store, history, find, clock, log: silentLog, ...owner });
  engine.runCallsOn(worker);
  worker.start();
  const sweeper = new Sweeper({ store, clock, log: silentLog, isDead: () => false });
  sweeper.start();
  const common = { openEngine: async () => engine, find: (name: string) => find(name)?.command, clock, log: silentLog, isDebug: false };
  const polls = new PollLimit(clock);
  const connections: Connection[] = [];
  const parked = new Map<string, () => void>();
  const { factory, ...own } = createParts({ ...common, polls, parked }, catalog, { history, onConnection: (connection) => connections.push(connection) });
  const subscriptions = new TaskSubscriptions(common);
  const sessions = new Sessions({ factory, clock, onerror: () => undefined });
  const modern = createMcpHandler(factory, { legacy: "reject", onerror: () => undefined });
  return {
    engine,
    connections,
    parked,
    openPipe({ hasHook } = { hasHook: false }) {
      const toServer = new PassThrough();
      const toClient = new PassThrough();
      const runtime = {
        settings: { mcp: hasHook ? () => undefined : undefined },
        catalog,
        factory,
        ...own,
        subscriptions,
        clock,
        log: silentLog,
      } as unknown as Runtime;
      const served = serveStreams(runtime, { input: toServer, output: toClient, write: (text, onWritten) => toClient.write(text, onWritten) });
      return overStreams(toServer, toClient, async () => {
        toServer.end();
        await served;
      });
    },
    openHttp() {
      const from = { caller: localUser, authInfo: toAuthInfo(localUser) };
      return overHttp("http://localhost/mcp", {
        async fetch(request) {
          const parsedBody: unknown = await request.clone().json();
          const isLegacy = await isLegacyRequest(request, parsedBody);
          return isLegacy ? await sessions.handle(request, { ...from, parsedBody }) : await modern.fetch(request, { authInfo: from.authInfo, parsedBody });
        },
      });
    },
    async close() {
      await Promise.all([modern.close(), sessions.close()]);
      sweeper.stop();
      await worker.stop(0);
      await history.flush();
      await store.close();
    },
  };
}

function createParts(
  common: ConstructorParameters<typeof TaskSubscriptions>[0] & { polls: PollLimit; parked: Map<string, () => void> },
  catalog: Catalog,
  { history, onConnection }: { history: History; onConnection: (connection: Connection) => void },
) {
  const { clock } = common;
  const readStats = () => history.stats();
  const tools = createTools({
    ...common,
    log: silentLog,
    catalog,
    readStats,
    keepInlineMs: 600_000,
    states: new RequestStates(clock, () => "a secret of these tests"),
    tokens: new ProgressTokens(clock),
    plain: new PlainRoad({ ...common, toolPrefix: "" }),
    hosts: {},
    hostName: undefined,
  });
  const resources = createResources(readStats);
  const tasks2026 = createTasks2026(common);
  const createTasks2025 = (connection: Connection) => {
    onConnection(connection);
    return new Tasks2025(connection, { ...common, log: silentLog, errorsAsCompleted: false });
  };
  const completions = { complete: () => undefined };
  const router = createRouter({ tools, resources, prompts: undefined, completions, facts, tasks2026 });
  const factory: McpServerFactory = ({ era, authInfo }) => {
    const caller = fromAuthInfo(authInfo) ?? localUser;
    const capabilities = era === "modern" ? { extensions: { [tasksExtension]: {} } } : { tasks: tasksCapability(caller) };
    const server = new CommandServer(facts, {
      tools,
      resources,
      prompts: undefined,
      completions,
      capabilities: capabilities as ServerCapabilities,
    });
    server.serveAll();
    if (era === "modern") server.serve(tasks2026);
    else {
      server.tasks2025 = createTasks2025(server);
      server.serve(server.tasks2025.methods(caller));
    }
    return server;
  };
  return { factory, router, createTasks2025, lists: ["tools"] as const };
}

function toCatalog(commands: Readonly<Record<string, Command>>): Catalog {
  const entries: CatalogEntry[] = Object.entries(commands).map(([toolName, command]) => ({ toolName, path: toolName.split("_"), file: "", command }));
  return {
    entries,
    problems: [],
    revision: 1,
    get: (toolName) => entries.find((entry) => entry.toolName === toolName),
    problemOf: () => undefined,
    onChange: () => () => undefined,
    close: () => undefined,
  };
}

/** Lets everything happen that needs no time. */
export async function turns(count = 8): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

/** Waits for what needs a moment of the clock's time. */
export async function moving<T>(clock: FakeClock, promise: Promise<T>, stepMs = 10): Promise<T> {
  let isSettled = false;
  void promise.finally(() => (isSettled = true)).catch(() => undefined);
  while (!isSettled) {
    await turns();
    if (!isSettled) clock.advance(stepMs);
  }
  return await promise;
}
