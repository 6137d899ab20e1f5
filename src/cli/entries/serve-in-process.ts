import { systemClock } from "../../clock.ts";
import { guardBuiltins } from "../../command/guard-builtins.ts";
import { watchLoop } from "../../command/loop-watch.ts";
import { describeHarm, limitPrints, surviveCommands, takeStdout } from "../../command/process-guard.ts";
import { currentRun } from "../../command/running.ts";
import { printWaitingNote } from "../../daemon/waiting-note.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { type Logger, openLog } from "../../log.ts";
import { thisProgram } from "../../program/program.ts";
import { flagWords, type ProjectFlags } from "../../project/project.ts";
import { readToken } from "../../runtime/home-token.ts";
import { openNodeStore } from "../../runtime/open-node-store.ts";
import { openRuntime, type Runtime } from "../../runtime/runtime.ts";
import { serveRuntimeOverHttp, serveStreams } from "../../serve.ts";
import type { Settings } from "../../settings/settings.ts";
import { toName } from "../../setup/launch.ts";
import { describeStore, type Store } from "../../store/open.ts";
import { onStop } from "../../system/on-stop.ts";
import { taskPlaces } from "../../task/limits.ts";
import type { ProcessContext } from "../process-context.ts";
import { httpBanner } from "../screens/http-banner.ts";
import { workerBanner } from "../screens/worker-banner.ts";
import type { TypedVerb } from "../verb.ts";

/** Time limit for closing open connections. */
const closeMs = 3_000;

type Served = Pick<TypedVerb, "terminal" | "context">;

/** `serve --in-process`: the server is this process, on its own stdin and stdout. */
export async function serveOverStdio(settings: Settings, context: ProcessContext): Promise<ExitCode> {
  // A client that stops reading has disconnected. The connection notices it, and its calls become tasks before this
  // process ends.
  context.stdout.removeAllListeners("error");
  const stdout = takeStdout(context.guarded);
  const runtime = await open(settings, context, { loadsLate: true });
  const stopped = stopOf(context);
  printWaitingNote(context, settings.isWrap);
  const streams = { input: context.stdin, output: stdout.stream, write: stdout.write, folder: context.cwd };
  const isTold = await Promise.race([stopped.then(() => true), serveStreams(runtime, streams).then(() => false)]);
  // After a signal the open calls have the grace period. After a disconnect they have none: the host kills soon.
  await runtime.close(isTold ? settings.graceSeconds * 1000 : 0);
  return Exit.Ok;
}

/** `serve --http`. */
export async function serveOverHttp(
  settings: Settings,
  { terminal, context, project }: Served & { readonly project: ProjectFlags },
): Promise<ExitCode> {
  takeStdout(context.guarded);
  // Opened first, so that a database that cannot be used stops the start: no client is connected yet.
  const runtime = await open(settings, context, { openFirst: (log) => openNodeStore(settings, { log }) });
  const door = await serveRuntimeOverHttp(runtime, context.cwd);
  await runtime.tasks.start();
  const { name, version, home, http, auth } = settings;
  const wrapped = settings.isWrap ? Object.keys(settings.upstreams) : undefined;
  const facts = {
    url: http.socket === undefined ? door.url : "http://localhost/mcp",
    socket: http.socket,
    name: wrapped?.length === 1 && wrapped[0] !== undefined ? wrapped[0] : toName(name),
    wrapped,
    version,
    entries: runtime.catalog.entries,
    home: home.folder,
    tokenFile: home.tokenFile,
    options: flagWords(project),
  };
  const access = { allowAnonymous: http.allowAnonymous, issuers: auth.issuers.map(({ issuer }) => issuer) };
  const program = context.env.npm_command === undefined ? thisProgram.name : `npx ${thisProgram.packageName}`;
  terminal.say(httpBanner({ ...facts, ...access, program, token: readToken(home) }, terminal));
  await stopOf(context);
  terminal.say("Stopping.\n");
  await runtime.close(settings.graceSeconds * 1000);
  await Promise.race([door.close(), new Promise<void>((resolve) => runtime.clock.after(closeMs, resolve))]);
  return Exit.Ok;
}

/** `worker`: runs the tasks of a project and serves no clients. */
export async function workUntilStopped(settings: Settings, { terminal, context }: Served): Promise<void> {
  takeStdout(context.guarded);
  const runtime = await open(settings, context, { openFirst: (log) => openNodeStore(settings, { log }) });
  await runtime.tasks.start();
  const { version, project } = settings;
  const facts = { version, project, commands: runtime.catalog.entries.length, store: describeStore(settings.store) };
  terminal.say(workerBanner({ ...facts, places: taskPlaces(settings.concurrency).total }, terminal));
  await stopOf(context);
  terminal.say("Stopping.\n");
  const { waiting } = await runtime.close(settings.graceSeconds * 1000);
  if (waiting > 0) terminal.say(`${waiting} task${waiting === 1 ? "" : "s"} left for other workers.\n`);
}

/** Resolves at the first signal to stop. */
function stopOf(context: ProcessContext): Promise<void> {
  return new Promise((resolve) => void onStop(resolve, context));
}

async function open(
  settings: Settings,
  { guarded, stderr }: ProcessContext,
  { openFirst, loadsLate = false }: { openFirst?: (log: Logger) => Promise<Store>; loadsLate?: boolean },
): Promise<Runtime> {
  // Commands and the log both write to stderr. The limit is for commands only.
  const write = limitPrints(guarded, {
    clock: systemClock,
    who: () => currentRun()?.name,
    onLeftOut: (sentence) => log.warn(sentence),
  });
  const log: Logger = openLog({ level: settings.logLevel, isTerminal: stderr.isTTY === true, write });
  surviveCommands(guarded, {
    currentRun,
    onBug: (error) => log.error("nobody caught this; please report it", { error }),
  });
  let runtime: Runtime | undefined;
  const advice = "this server should be restarted, since nobody knows what else was changed";
  const stopGuarding = guardBuiltins((harm) =>
    log.error(describeHarm(harm, advice, (name) => runtime?.catalog.get(name)?.file)),
  );
  const opened = await openRuntime(settings, {
    log,
    loadsLate,
    ...(openFirst !== undefined && { store: await openFirst(log) }),
  });
  runtime = opened;
  const stopWatching = watchLoop(systemClock, log);
  return {
    ...opened,
    async close(graceMs) {
      const closed = await opened.close(graceMs);
      stopWatching();
      stopGuarding();
      return closed;
    },
  };
}
