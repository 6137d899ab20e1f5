import { type CallerDetails, type UserIdentity, userCaller } from "../../src/command/caller.ts";
import type { UserConfig } from "../../src/config.ts";
import { silentLog } from "../../src/log.ts";
import type { Wrap } from "../../src/project/wrap.ts";
import { temporaryFolder, writeFiles } from "./home.ts";
import { openServer } from "./server.ts";
import { resultOf, type WireClient, type WireOptions } from "./wire.ts";

interface Given {
  readonly config?: Omit<UserConfig, "upstreams"> & { readonly upstreams?: object };
  readonly files?: Readonly<Record<string, string>>;
  readonly wrap?: Wrap;
  readonly home?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Without `scopes` a user may call. */
export type User = UserIdentity & Pick<CallerDetails, "scopes" | "groups">;

const toUser = ({ scopes = ["meanwhile:call"], groups = [], ...identity }: User) =>
  userCaller(identity, { scopes, groups });

/** A project of this config, or what is wrapped, in this process. */
export async function serveGateway(given: Given) {
  const { config, files = {}, wrap, home = temporaryFolder(), cwd = temporaryFolder(), env = {} } = given;
  writeFiles(cwd, files);
  const logged: string[] = [];
  const keep = (text: string) => void logged.push(text);
  const server = await openServer({
    in: "http",
    ...(wrap === undefined ? { projectCommands: "with bundled" as const } : { wrap }),
    ...(config !== undefined && { config }),
    ...{ home, cwd, env },
    store: "sqlite",
    log: { ...silentLog, error: keep, warn: keep },
    // Callers over HTTP are known by a header.
    identify: ({ headers }) =>
      typeof headers["x-caller"] === "string" ? toUser(JSON.parse(headers["x-caller"]) as User) : undefined,
  });
  const { runtime } = server;
  const connect = (revision = "2025-11-25", capabilities: object = {}) =>
    server.client({ revision, capabilities }, { over: "stdio" });
  /** A client over HTTP. */
  const connectHttp = (dialect: string | Omit<WireOptions, "name">, caller: "local" | "anonymous" | User = "local") =>
    server.client(typeof dialect === "string" ? { revision: dialect, capabilities: {} } : dialect, {
      over: "http",
      ...(typeof caller === "object" && { headers: { "x-caller": JSON.stringify(caller) } }),
      isAnonymous: caller === "anonymous",
    });
  /** The address over HTTP. */
  const listen = server.url;
  return { runtime, logged, connect, connectHttp, listen, home, cwd };
}

export const namesIn = async (client: WireClient, list: "tools" | "prompts") =>
  (resultOf(await client.request(`${list}/list`))[list] as { name: string }[]).map(({ name }) => name);

/** What the first block of a result says. */
export const textIn = (result: { content?: readonly { text: string }[] }) => result.content?.[0]?.text;
