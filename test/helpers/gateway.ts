import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "../../src/command/caller.ts";
import type { UserConfig } from "../../src/config.ts";
import { silentLog } from "../../src/log.ts";
import type { Wrap } from "../../src/project/wrap.ts";
import { readToken } from "../../src/runtime/home-token.ts";
import { openRuntime } from "../../src/runtime/runtime.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { serveHttp } from "../../src/transport/http/http-door.ts";
import { cleanUp, temporaryFolder, writeFiles } from "./home.ts";
import { openDoors } from "./in-process.ts";
import { overStreams, resultOf, WireClient } from "./wire.ts";

interface Given {
  readonly config?: Omit<UserConfig, "upstreams"> & { readonly upstreams?: object };
  readonly files?: Readonly<Record<string, string>>;
  readonly wrap?: Wrap;
  readonly home?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A project of this config, or what is wrapped, in this process. */
export async function serveGateway(given: Given) {
  const { config, files = {}, wrap, home = temporaryFolder(), cwd = temporaryFolder(), env = {} } = given;
  const said = config === undefined ? {} : { "meanwhile.config.json": JSON.stringify(config) };
  writeFiles(cwd, { ...said, ...files });
  const flags = wrap === undefined ? {} : { wrap };
  const settings = await loadSettings({ cwd, env: { ...process.env, MEANWHILE_HOME: home, ...env }, flags });
  const logged: string[] = [];
  const keep = (text: string) => void logged.push(text);
  const runtime = await openRuntime(settings, { log: { ...silentLog, error: keep, warn: keep } });
  const open = openDoors(runtime, cwd);
  const connect = async (revision = "2025-11-25", capabilities: object = {}) => {
    const { stdin, stdout, close } = open();
    const client = new WireClient(overStreams(stdin, stdout, close), { revision, capabilities });
    cleanUp(() => client.close());
    return await client.begin();
  };
  /** The same as `--http` serves it, to callers who are known by a header; its address. */
  const listen = async () => {
    const { serving, clock, log } = runtime;
    const identify = ({ headers }: { readonly headers: IncomingHttpHeaders }) =>
      typeof headers["x-caller"] === "string" ? (JSON.parse(headers["x-caller"]) as Caller) : undefined;
    const token = readToken(settings.home);
    const door = await serveHttp({
      serving,
      clock,
      log,
      token,
      host: "127.0.0.1",
      port: 0,
      allowAnonymous: true,
      identify,
    });
    await runtime.tasks.start();
    cleanUp(() => door.close());
    return door.url;
  };
  return { runtime, logged, connect, listen, home };
}

export const namesIn = async (client: WireClient, list: "tools" | "prompts") =>
  (resultOf(await client.request(`${list}/list`))[list] as { name: string }[]).map(({ name }) => name);

/** What the first block of a result says. */
export const textIn = (result: { content?: readonly { text: string }[] }) => result.content?.[0]?.text;
