import { readFileSync } from "node:fs";
import path from "node:path";
import { PassThrough } from "node:stream";
import { openRuntime, type Runtime } from "../../src/runtime/runtime.ts";
import { serveRuntimeOverHttp, serveStreams } from "../../src/serve.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { cleanUp, temporaryFolder } from "./home.ts";
import type { Pipes } from "./server.ts";

/**
 * Servers in this very process, for tests in which the process is not the matter: a start here costs a tenth of a
 * process's.
 */

export interface Place {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** The streams of a server that stops when its client closes the connection. */
interface OwnPipes extends Pipes {
  readonly left: Promise<void>;
}

/** What `meanwhile serve --in-process` is with these words. */
export async function servePipesHere(words: readonly string[], place: Place = {}): Promise<OwnPipes> {
  const { runtime, cwd } = await open(words, place);
  const pipes = openPipes(runtime, cwd, () => runtime.close(0));
  cleanUp(() => pipes.close());
  return pipes;
}

/** A server of these settings, and connections to it. */
export function openDoors(runtime: Runtime, folder: string): () => Pipes {
  cleanUp(() => runtime.close(0));
  return () => openPipes(runtime, folder);
}

export interface HttpHere {
  readonly url: string;
  readonly home: string;
  readonly token: () => string;
  /** One more connection to the same server, as a daemon has them; whoever opens it closes it. */
  readonly openPipes: () => Pipes;
}

/** What `meanwhile serve --http --port 0 --allow-anonymous` is with these words. */
export async function serveHttpHere(words: readonly string[] = [], place: Place = {}): Promise<HttpHere> {
  const { runtime, cwd, home } = await open(words, place);
  const door = await serveRuntimeOverHttp(runtime);
  await runtime.tasks.start();
  cleanUp(async () => {
    await runtime.close(0);
    await door.close();
  });
  const token = () => readFileSync(path.join(home, "token"), "utf8").trim();
  return { url: door.url, home, token, openPipes: () => openPipes(runtime, cwd) };
}

function openPipes(runtime: Runtime, folder: string, afterwards?: () => Promise<unknown>): OwnPipes {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const served = serveStreams(runtime, {
    input: stdin,
    output: stdout,
    write: (text, onWritten) => stdout.write(text, onWritten),
    folder,
  });
  const left = served.then(async () => void (await afterwards?.()));
  const close = async () => {
    stdin.end();
    await left;
  };
  return { stdin, stdout, left, close };
}

async function open(words: readonly string[], { cwd = temporaryFolder(), env = {} }: Place) {
  const home = env.MEANWHILE_HOME ?? temporaryFolder();
  const commands = words.filter((_, at) => words[at - 1] === "--commands");
  const flags = {
    ...(commands.length > 0 && { commands }),
    ...(words.includes("--no-bundled") && { bundled: false }),
    allowAnonymous: true,
    port: 0,
  };
  const settings = await loadSettings({ cwd, env: { ...process.env, MEANWHILE_HOME: home, ...env }, flags });
  return { runtime: await openRuntime(settings), cwd, home };
}
