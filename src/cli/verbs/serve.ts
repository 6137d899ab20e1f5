import { systemClock } from "../../clock.ts";
import { describeHarm, limitPrints, surviveCommands, takeStdout } from "../../command/process-guard.ts";
import { currentRun, guardBuiltins } from "../../command/run.ts";
import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import { type Logger, openLog } from "../../log.ts";
import { openRuntime, type Runtime, readToken, serveRuntimeOverHttp, serveStreams } from "../../serve.ts";
import { isPort } from "../../settings/check-config.ts";
import { loadSettings, type Settings } from "../../settings/settings.ts";
import { toName } from "../../setup/launch.ts";
import { openStore, type Store } from "../../store/open.ts";
import { onStop } from "../../system/on-stop.ts";
import type { VerbCall } from "../main.ts";
import { httpBanner } from "../screens/http-banner.ts";
import { printHelp } from "../screens/layout.ts";
import type { Terminal } from "../terminal.ts";
import { declareProject, parseVerb, toProjectFlags } from "../verb.ts";

/** How long open connections may take to close. */
const closeMs = 3_000;

export async function run(call: VerbCall): Promise<ExitCode> {
  if (call.words.includes("--require-token"))
    throw new UsageError(
      "--require-token is no flag any more, because HTTP asks for the token by itself; leave it out (--allow-anonymous lets callers in without one).",
    );
  const parsed = parseVerb(
    "serve",
    "Serve the commands to MCP clients: over stdio, or over HTTP with --http",
    call.words,
    (program) => {
      program.option("--http", "serve Streamable HTTP instead of stdio");
      program.option("--port <number>", "HTTP port, 0 for any free one (default 7337)");
      program.option("--host <address>", "loopback address to listen on (default 127.0.0.1)");
      program.option(
        "--allow-anonymous",
        "let HTTP callers in without the home's token; they have no bundled commands",
      );
      program.option("--in-process", "stdio without the daemon: what runs ends with this process");
      declareProject(program);
    },
  );
  if ("help" in parsed) {
    printHelp(parsed.help, call.terminal);
    return Exit.Ok;
  }
  const { options } = parsed;
  const port = options.port === undefined ? undefined : Number(options.port);
  if (port !== undefined && !isPort(port))
    throw new UsageError(`--port must be a whole number from 0 to 65535, not ${String(options.port)}.`);
  const project = toProjectFlags(options, call.flags);
  if (options.http !== true && options.inProcess !== true) {
    for (const name of ["port", "host", "allowAnonymous"])
      if (options[name] !== undefined) throw new UsageError(`--${toWord(name)} is for --http.`);
    const { runFront } = await import("../../daemon/front.ts");
    return (await runFront(project)) as ExitCode;
  }
  const settings = await loadSettings({
    cwd: process.cwd(),
    env: process.env,
    flags: {
      ...project,
      ...(port !== undefined && { port }),
      ...(options.host !== undefined && { host: options.host as string }),
      ...(options.allowAnonymous === true && { allowAnonymous: true }),
    },
  });
  return options.http === true ? await overHttp(settings, call.terminal) : await overStdio(settings);
}

function toWord(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

async function overStdio(settings: Settings): Promise<ExitCode> {
  // A client that stops reading has hung up, and the connection hears of that; what ran for it is kept before this
  // process ends.
  process.stdout.removeAllListeners("error");
  const stdout = takeStdout(process);
  const runtime = await open(settings);
  const stopped = new Promise<void>((resolve) => onStop(resolve));
  const streams = { input: process.stdin, output: stdout.stream, write: stdout.write, folder: process.cwd() };
  const isTold = await Promise.race([stopped.then(() => true), serveStreams(runtime, streams).then(() => false)]);
  // Who was told to stop answers everybody first; a client that has hung up waits for nothing, and its host kills soon.
  await runtime.close(isTold ? settings.graceSeconds * 1000 : 0);
  return Exit.Ok;
}

async function overHttp(settings: Settings, terminal: Terminal): Promise<ExitCode> {
  takeStdout(process);
  // Nobody is there yet who could be told later that the database cannot be used.
  const runtime = await open(settings, (log) => openStore(settings.store, { log }));
  const door = await serveRuntimeOverHttp(runtime);
  await runtime.startTasks();
  const { name, version, home, http } = settings;
  const facts = {
    url: door.url,
    name: toName(name),
    version,
    entries: runtime.catalog.entries,
    home: home.folder,
    tokenFile: home.tokenFile,
  };
  const program = process.env.npm_command === undefined ? "meanwhile" : "npx meanwhile";
  terminal.say(
    httpBanner({ ...facts, program, token: readToken(home), allowAnonymous: http.allowAnonymous }, terminal),
  );
  await new Promise<void>((resolve) => onStop(resolve));
  terminal.say("Stopping.\n");
  await runtime.close(settings.graceSeconds * 1000);
  await Promise.race([door.close(), new Promise<void>((resolve) => runtime.clock.after(closeMs, resolve))]);
  return Exit.Ok;
}

async function open(settings: Settings, openFirst?: (log: Logger) => Promise<Store>): Promise<Runtime> {
  // Commands print to stderr, and so do we; only they are held to a limit.
  const write = limitPrints(process, {
    clock: systemClock,
    who: () => currentRun()?.name,
    onLeftOut: (sentence) => log.warn(sentence),
  });
  const log: Logger = openLog({ level: settings.logLevel, isTerminal: process.stderr.isTTY === true, write });
  surviveCommands(process, {
    currentRun,
    onBug: (error) => log.error("nobody caught this; please report it", { error }),
  });
  let runtime: Runtime | undefined;
  const advice = "this server should be restarted, since nobody knows what else was changed";
  guardBuiltins((harm) => log.error(describeHarm(harm, advice, (name) => runtime?.catalog.get(name)?.file)));
  runtime = await openRuntime(settings, log, openFirst === undefined ? {} : { store: await openFirst(log) });
  return runtime;
}
