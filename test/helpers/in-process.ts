import { PassThrough, type Readable, type Writable } from "node:stream";
import { loadSettings } from "../../src/config.ts";
import { silentLog } from "../../src/log.ts";
import { openRuntime, serveRuntimeOverHttp, serveStreams } from "../../src/serve.ts";
import { cleanUp } from "./home.ts";

/** For tests in which the process is not the matter: a start here costs a tenth of a process's. */

export interface HereOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Folders of commands; there are no others. */
  readonly commands: readonly string[];
}

/** What a server on pipes is to its client. */
export interface Pipes {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Hangs up, and resolves when the server has left. */
  close(): Promise<void>;
}

/** The server that `meanwhile serve --in-process` starts, in this very process. */
export async function servePipesHere(options: HereOptions): Promise<Pipes> {
  const runtime = await open(options);
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const left = serveStreams(runtime, { input: stdin, output: stdout, write: (text) => stdout.write(text), folder: options.cwd }).then(async () => {
    await runtime.close(0);
  });
  const close = async () => {
    stdin.end();
    await left;
  };
  cleanUp(close);
  return { stdin, stdout, close };
}

/** The server that `meanwhile serve --http --port 0 --allow-anonymous` starts, in this very process; its URL. */
export async function serveHttpHere(options: HereOptions): Promise<string> {
  const runtime = await open(options);
  const door = await serveRuntimeOverHttp(runtime);
  await runtime.startTasks();
  cleanUp(async () => {
    await runtime.close(0);
    await door.close();
  });
  return door.url;
}

async function open({ cwd, env, commands }: HereOptions) {
  const settings = await loadSettings({
    cwd,
    env: { ...process.env, ...env },
    flags: { bundled: false, commands: [...commands], allowAnonymous: true, port: 0 },
  });
  return await openRuntime(settings, silentLog);
}
