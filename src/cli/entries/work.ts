import { sleep, systemClock } from "../../clock.ts";
import { mergeSources } from "../../command/catalog.ts";
import { guardBuiltins } from "../../command/guard-builtins.ts";
import { watchLoop } from "../../command/loop-watch.ts";
import { describeHarm, limitPrints } from "../../command/process-guard.ts";
import { currentRun } from "../../command/running.ts";
import { keepLogBounded } from "../../daemon/log-file.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { type Logger, openLog } from "../../log.ts";
import { codeSources, openServedFolders } from "../../project/project-commands.ts";
import { gatewayOf } from "../../runtime/gateway-of.ts";
import { createHook, openHook } from "../../runtime/open-hook.ts";
import { openTasks } from "../../runtime/open-tasks.ts";
import { loadSettings } from "../../settings/settings.ts";
import { onStoreGone } from "../../store/open.ts";
import { onStop } from "../../system/on-stop.ts";
import type { Tasks } from "../../task/tasks.ts";
import type { VerbCall } from "../verb.ts";

const retryCheckMs = 500;

/** Tasks that wait for their next attempt keep the worker; a moment passes before it looks again. */
async function hasRetries(tasks: Tasks): Promise<boolean> {
  const isLeft = await tasks.engine.hasOwn(tasks.localKey, { statuses: ["queued"] });
  if (isLeft) await sleep(systemClock, retryCheckMs);
  return isLeft;
}

/** The detached worker behind `--detach`: runs this project's tasks until there are none. */
export async function run(call: Omit<VerbCall, "words">): Promise<ExitCode> {
  const { cwd, env, stderr, guarded, exit } = call.context;
  await call.protectStdout();
  const settings = await loadSettings({ cwd, env, flags: call.flags });
  const write = limitPrints(guarded, {
    clock: systemClock,
    who: () => currentRun()?.name,
    onLeftOut: (sentence) => log.warn(sentence),
  });
  const log: Logger = openLog({ level: settings.logLevel, isTerminal: false, write });
  const { workerLog: file } = settings.home;
  const { fd } = stderr;
  const stopBounding =
    fd === undefined ? undefined : keepLogBounded({ file, files: settings.logFiles, fd, clock: systemClock });
  const stopGuarding = guardBuiltins((harm) =>
    log.error(describeHarm(harm, "this worker goes on", (name) => catalog.get(name)?.file)),
  );
  // What comes back while a task waits for it has to be noticed.
  const hook = createHook(settings, log);
  const gateway = await gatewayOf(settings, { clock: systemClock, log });
  const own = [await openServedFolders(settings, { clock: systemClock, log }), ...codeSources(settings)];
  const hooked = hook === undefined ? [] : [hook.tools];
  gateway?.standBeside([...own, ...hooked]);
  const catalog = mergeSources([...own, ...(gateway?.sources ?? []), ...hooked], { log });
  if (hook !== undefined) await openHook(hook, systemClock);
  const tasks = await openTasks(settings, { log });
  const worker = tasks.createWorker((name) => catalog.get(name));
  const stopWatching = watchLoop(systemClock, log);
  tasks.sweeper.start();
  worker.start();
  const leave = (code: ExitCode) => {
    stopWatching();
    exit(code);
  };
  const stopListening = onStop(
    () => void worker.stop(settings.graceSeconds * 1000).then(() => leave(Exit.Ok)),
    call.context,
  );
  // Without its database a worker could record nothing any more, so it does not stay for tasks that wait.
  const stopLooking = onStoreGone(settings.store, systemClock, () => {
    log.error("the database of tasks is gone; this worker leaves");
    leave(Exit.Internal);
  });
  do await worker.runUntilIdle();
  while (await hasRetries(tasks));
  stopListening();
  stopLooking();
  stopBounding?.();
  stopWatching();
  stopGuarding();
  catalog.close();
  gateway?.close();
  tasks.sweeper.stop();
  await worker.stop();
  await tasks.close();
  return Exit.Ok;
}
