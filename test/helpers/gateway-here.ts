import { spawn } from "node:child_process";
import path from "node:path";
import type { UpstreamConfig } from "../../src/project/upstream-config.ts";
import { type SdkEra, serveSdk } from "../fixtures/gateway/sdk-server.ts";
import { cleanUp, temporaryFolder, writeFiles } from "./home.ts";
import { openServer, type Pipes } from "./server.ts";
import { overHttp, overPipes, WireClient, type WireOptions } from "./wire.ts";

/** `meanwhile wrap` in this process, in front of one server, with a door to each transport. */
export interface GatewayHere {
  readonly url: string;
  /** Of servers that were started. */
  pids(): readonly number[];
  openPipes(): Pipes;
  connect(door: "stdio" | "http", options: WireOptions): Promise<WireClient>;
}

/** `config`: the user's own, in the home. */
export async function wrapHere(
  upstream: UpstreamConfig,
  config: object = {},
  others: Readonly<Record<string, UpstreamConfig>> = {},
): Promise<GatewayHere> {
  const home = writeFiles(temporaryFolder(), { "config.json": JSON.stringify(config) });
  const wrap = { upstreams: { theirs: upstream, ...others } };
  const server = await openServer({ in: "http", wrap, store: "sqlite", home });
  return {
    url: await server.url(),
    pids: () => server.runtime.upstreams?.statuses().flatMap(({ pids }) => pids) ?? [],
    openPipes: server.openPipes,
    connect: (over, options) => server.client(options, { over, isAnonymous: true }),
  };
}

async function begin(client: WireClient): Promise<WireClient> {
  cleanUp(() => client.close());
  return await client.begin();
}

/** A client of a server at an address, with nothing between. */
export async function connectUrl(url: string, options: WireOptions): Promise<WireClient> {
  const client = await begin(new WireClient(overHttp(url), options));
  if (options.revision < "2026-07-28") await client.openStream();
  return client;
}

/** A client of a server that is started for it, with nothing between. */
export async function connectCommand(
  { command = "", args = [], env = {}, cwd }: UpstreamConfig,
  options: WireOptions,
): Promise<WireClient> {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    ...(cwd !== undefined && { cwd }),
  });
  child.stderr.resume();
  const ended = new Promise((resolve) => child.once("close", resolve));
  cleanUp(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return await new WireClient(overPipes(child), options).begin();
}

const program = path.resolve(import.meta.dirname, "../fixtures/gateway/sdk-server.ts");

/** A server of the SDK's, see test/fixtures/gateway/sdk-server.ts. */
export const sdkCommand = (era: SdkEra, env: Record<string, string> = {}): UpstreamConfig => ({
  command: process.execPath,
  args: [program, era],
  env,
});

/** The same at an address, in this process. */
export async function sdkUrl(era: SdkEra): Promise<UpstreamConfig> {
  const { url, close } = await serveSdk(era);
  cleanUp(close);
  return { url };
}
