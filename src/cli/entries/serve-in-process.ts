import { systemClock } from "../../clock.ts";
import { guardBuiltins } from "../../command/guard-builtins.ts";
import { watchLoop } from "../../command/loop-watch.ts";
import { describeHarm, limitPrints, surviveCommands, takeStdout } from "../../command/process-guard.ts";
import { currentRun } from "../../command/running.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { type Logger, openLog } from "../../log.ts";
import { thisProgram } from "../../program/program.ts";
import { readToken } from "../../runtime/home-token.ts";
import { openNodeStore } from "../../runtime/open-node-store.ts";
import { openRuntime, type Runtime } from "../../runtime/runtime.ts";
import { serveRuntimeOverHttp, serveStreams } from "../../serve.ts";
import type { Settings } from "../../settings/settings.ts";
import { toName } from "../../setup/launch.ts";
import { describeStore, type Store } from "../../store/open.ts";
import { onStop } from "../../system/on-stop.ts";
import { taskPlaces } from "../../task/limits.ts";
import { httpBanner } from "../screens/http-banner.ts";
import { workerBanner } from "../screens/worker-banner.ts";
import type { Terminal } from "../terminal.ts";

/** How long open connections may take to close. */
const closeMs = 3_000;

/** `serve --in-process`: the server is this process, on its own stdin and stdout. */
export async function serveOverStdio(settings: Settings): Promise<ExitCode> {
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

/** `serve --http`. */
export async function serveOverHttp(settings: Settings, terminal: Terminal): Promise<ExitCode> {
  takeStdout(process);
  // Nobody is there yet who could be told later that the database cannot be used.
  const runtime = await open(settings, (log) => openNodeStore(settings, { log }));
  const door = await serveRuntimeOverHttp(runtime);
  await runtime.tasks.start();
  const { name, version, home, http } = settings;
  const wrapped = settings.isWrap ? Object.keys(settings.upstreams) : undefined;
  const facts = {
    url: door.url,
    name: wrapped?.length === 1 && wrapped[0] !== undefined ? wrapped[0] : toName(name),
    wrapped,
    version,
    entries: runtime.catalog.entries,
    home: home.folder,
    tokenFile: home.tokenFile,
  };
  const program = process.env.npm_command === undefined ? thisProgram.name : `npx ${thisProgram.packageName}`;
  terminal.say(
    httpBanner({ ...facts, program, token: readToken(home), allowAnonymous: http.allowAnonymous }, terminal),
  );
  await new Promise<void>((resolve) => onStop(resolve));
  terminal.say("Stopping.\n");
  await runtime.close(settings.graceSeconds * 1000);
  await Promise.race([door.close(), new Promise<void>((resolve) => runtime.clock.after(closeMs, resolve))]);
  return Exit.Ok;
}

/** `worker`: no door, and all the work. */
export async function workUntilStopped(settings: Settings, terminal: Terminal): Promise<void> {
  takeStdout(process);
  const runtime = await open(settings, (log) => openNodeStore(settings, { log }));
  await runtime.tasks.start();
  const { version, project } = settings;
  const facts = { version, project, commands: runtime.catalog.entries.length, store: describeStore(settings.store) };
  terminal.say(workerBanner({ ...facts, places: taskPlaces(settings.concurrency).total }, terminal));
  await new Promise<void>((resolve) => onStop(resolve));
  terminal.say("Stopping.\n");
  const { waiting } = await runtime.close(settings.graceSeconds * 1000);
  if (waiting > 0) terminal.say(`${waiting} task${waiting === 1 ? "" : "s"} left for other workers.\n`);
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
  runtime = await openRuntime(settings, { log, ...(openFirst !== undefined && { store: await openFirst(log) }) });
  watchLoop(systemClock, log);
  return runtime;
}
