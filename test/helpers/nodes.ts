import path from "node:path";
import { cleanUp, temporaryFolder, writeFiles } from "./home.ts";
import { startHttp } from "./meanwhile.ts";
import { openServer } from "./server.ts";
import { overHttp, WireClient, type WireOptions } from "./wire.ts";

/** Several servers on one store, each with a home of its own; the operator has given all of them the same token. */

const fixtures = path.resolve(import.meta.dirname, "../fixtures");
const folders = ["deferral", "questions", "nodes"].map((name) => path.join(fixtures, name, "commands"));
/** The flags that select the commands of the nodes, and with them the project. */
export const nodesFlags = ["--no-bundled", ...folders.flatMap((folder) => ["--commands", folder])];
export const nodesToken = "the-same-token-in-all-homes-of-these-nodes";

export interface Node {
  readonly url: string;
  /** As a service manager stops it; resolves when it has left. */
  stop(): Promise<void>;
}

interface NodesPlace {
  readonly cwd: string;
  readonly env: Record<string, string>;
}

/** Nodes in this process. */
export async function serveNodesHere(count: number, env: Record<string, string> = {}): Promise<readonly string[]> {
  const { cwd, env: shared } = createPlace(env);
  const open = () =>
    openServer({ in: "http", commands: folders, store: "sqlite", cwd, home: createHome(), env: shared });
  return await Promise.all(Array.from({ length: count }, async () => await (await open()).url()));
}

interface NodesOptions {
  readonly env?: Record<string, string>;
  /** Of another copy of the package. */
  readonly executable?: string;
}

/** Nodes in processes of their own; more of them may be started later, of another copy too. */
export async function startNodes(count: number, { env = {}, executable }: NodesOptions = {}) {
  const place = createPlace(env);
  const start = (of = executable): Promise<Node> => startNode(place, of);
  const nodes = await Promise.all(Array.from({ length: count }, () => start()));
  return Object.assign(nodes as readonly Node[], { start });
}

async function startNode({ cwd, env }: NodesPlace, executable: string | undefined): Promise<Node> {
  const options = { cwd, env: { ...env, MEANWHILE_HOME: createHome() } };
  const started = await startHttp(nodesFlags, executable === undefined ? options : { ...options, executable });
  return {
    url: started.url,
    async stop() {
      started.child.kill("SIGTERM");
      await started.exited;
    },
  };
}

function createPlace(env: Record<string, string>): NodesPlace {
  const cwd = temporaryFolder();
  return { cwd, env: { MEANWHILE_STORE: path.join(cwd, "store", "tasks.db"), ...env } };
}

function createHome(): string {
  return writeFiles(temporaryFolder(), { token: `${nodesToken}\n` });
}

interface NodesClient extends WireOptions {
  readonly isAnonymous?: boolean;
  /** Default: the token of the nodes. */
  readonly token?: string;
}

/** A client whose requests go wherever `next` says. */
export function clientAt(
  next: () => string,
  { isAnonymous = false, token = nodesToken, ...wire }: NodesClient,
): Promise<WireClient> {
  const begin = (_url: string, init: RequestInit) => fetch(next(), init);
  const link = overHttp("http://node.invalid/mcp", { ...(isAnonymous ? {} : { token }), fetch: begin });
  cleanUp(() => link.close());
  return new WireClient(link, wire).begin();
}

/** The same, with a hand that points to one of the nodes. */
export async function movingClient(urls: readonly string[], options: NodesClient) {
  let at = 0;
  const client = await clientAt(() => urls[at] as string, options);
  return Object.assign(client, {
    /** From now on requests go to this node. */
    go(to: number) {
      at = to;
    },
  });
}
