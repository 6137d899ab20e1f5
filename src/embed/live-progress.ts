import { systemClock } from "../clock.ts";
import { thisProgram } from "../program/program.ts";
import { readSettings } from "../settings/settings.ts";
import { storeExists } from "../store/open.ts";
import type { Tasks } from "../task/tasks.ts";
import type { TokenAnswer, TokenProgress } from "../task/token-progress.ts";

/**
 * Progress by token, for whoever is not the client: an author's script, a status bar, a test that wants to know how far
 * the call is that some client makes. Asked of the home's database, so it sees every server of this user on this
 * machine.
 */
export interface ProgressOptions {
  /** Meanwhile's folder. Default: `MEANWHILE_HOME`, or `~/.meanwhile`. */
  readonly home?: string;
}

/** How far the live call with this progress token is; why not, where there is none. */
export async function progressOf(token: string | number, options: ProgressOptions = {}): Promise<TokenAnswer> {
  const { progressOfToken } = await import("../task/token-progress.ts");
  return await look(
    options,
    (tasks, caller) => progressOfToken(tasks.engine, caller, { token, now: systemClock.now() }),
    {
      ok: false,
      error: "token_not_found",
      message: `No live call has the progress token ${JSON.stringify(token)} (token_not_found): nothing has run here yet.`,
    },
  );
}

/** Every live call that has a progress token, newest first. */
export async function listProgress(options: ProgressOptions = {}): Promise<readonly TokenProgress[]> {
  const { listTokens } = await import("../task/token-progress.ts");
  return await look(options, (tasks, caller) => listTokens(tasks.engine, caller, systemClock.now()), []);
}

/** Nothing is opened, and no home made, for a look at what is not there. */
async function look<T>(
  { home }: ProgressOptions,
  ask: (tasks: Tasks, caller: string) => Promise<T>,
  none: T,
): Promise<T> {
  const env = home === undefined ? process.env : { ...process.env, [thisProgram.variable("HOME")]: home };
  const { settings } = readSettings({ cwd: process.cwd(), env, flags: { scope: "pack" } });
  if (!(await storeExists(settings.store))) return none;
  // Loaded when first needed: every command imports `meanwhile`, and few ask.
  const { openTasks } = await import("../runtime/open-tasks.ts");
  const tasks = await openTasks(settings, { seesAllProjects: true });
  try {
    await tasks.sweeper.interruptDead();
    return await ask(tasks, tasks.localKey);
  } finally {
    tasks.sweeper.stop();
    await tasks.close();
  }
}
