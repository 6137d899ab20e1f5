import { toTimestamp } from "../clock.ts";
import { thisProgram } from "../program/program.ts";
import type { Engine } from "./engine.ts";
import { timeLeft } from "./status-line.ts";
import { isTerminal, type LiveStatus, type LiveTask, liveStatuses } from "./task.ts";

/** How far a live call is whose client follows it by a progress token. */
export interface TokenProgress {
  /** The client's own; two clients may choose the same. */
  readonly token: string | number;
  readonly tool: string;
  readonly taskId: string;
  readonly status: LiveStatus;
  readonly startedAt: string;
  /** When it last said something. */
  readonly updatedAt: string;
  readonly value?: number;
  readonly total?: number;
  /** 0–100, when the end is known. */
  readonly percentage?: number;
  readonly message?: string;
  readonly context?: Readonly<Record<string, unknown>>;
  readonly secondsLeft?: number;
}

/** `token_not_found`: no live call has it. `timeout`: nobody has worked on its call for half a minute. */
export type TokenAnswer =
  | {
      readonly ok: true;
      readonly progress: TokenProgress /** Other clients' calls of the same token. */;
      readonly others: readonly TokenProgress[];
    }
  | { readonly ok: false; readonly error: "token_not_found" | "timeout"; readonly message: string };

/** As long as a worker's lease: after that its task may be taken up by another, or by nobody. */
const graceMs = 30_000;

/** Every live call that has a token, newest first; without those that nobody works on any more. */
export async function listTokens(engine: Engine, caller: string, now: number): Promise<TokenProgress[]> {
  return (await findTokens(engine, caller, () => true))
    .filter((task) => !isStale(task, now))
    .map((task) => toProgress(task, now));
}

/** The live calls whose token is meant. */
export async function progressOfToken(
  engine: Engine,
  caller: string,
  { token, now }: { readonly token: string | number; readonly now: number },
): Promise<TokenAnswer> {
  // Whoever types a token types text, whichever it is.
  const found = await findTokens(engine, caller, (other) => String(other) === String(token));
  const [progress, ...others] = found.filter((task) => !isStale(task, now)).map((task) => toProgress(task, now));
  if (progress !== undefined) return { ok: true, progress, others };
  const [stale] = found;
  const named = JSON.stringify(token);
  if (stale === undefined) {
    const message = `No live call has the progress token ${named} (token_not_found): it has ended, its client is gone, or the token is mistyped.`;
    return { ok: false, error: "token_not_found", message };
  }
  const seconds = Math.floor((now - stale.updatedAt) / 1000);
  const show = thisProgram.typed(`tasks show ${stale.taskId}`);
  const where = show === undefined ? `it is the task ${stale.taskId}` : `${show} says what became of it`;
  const message = `Nobody has worked on the call with the progress token ${named} for ${seconds} s (timeout); ${where}.`;
  return { ok: false, error: "timeout", message };
}

async function findTokens(
  engine: Engine,
  caller: string,
  isMeant: (token: string | number) => boolean,
): Promise<LiveTask[]> {
  const found: LiveTask[] = [];
  let cursor: string | undefined;
  do {
    const page = await engine.list(caller, {
      statuses: liveStatuses,
      withCalls: true,
      ...(cursor !== undefined && { cursor }),
    });
    for (const task of page.tasks)
      if (!isTerminal(task) && task.progressToken !== undefined && isMeant(task.progressToken)) found.push(task);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

/** A silent call that somebody works on is not stale, however long it is silent. */
function isStale({ lease, updatedAt }: LiveTask, now: number): boolean {
  const hasWorker = lease !== undefined && lease.until > now;
  return !hasWorker && now - updatedAt > graceMs;
}

function toProgress(task: LiveTask, now: number): TokenProgress {
  const { progress } = task;
  const left = timeLeft(task, now);
  return {
    token: task.progressToken ?? "",
    tool: task.command,
    taskId: task.taskId,
    status: task.status,
    startedAt: toTimestamp(task.startedAt ?? task.createdAt),
    updatedAt: toTimestamp(task.updatedAt),
    ...(progress?.value !== undefined && { value: progress.value }),
    ...(progress?.total !== undefined && { total: progress.total }),
    ...(progress?.percentage !== undefined && { percentage: progress.percentage }),
    ...(progress?.message !== undefined && { message: progress.message }),
    ...(progress?.context !== undefined && { context: progress.context }),
    ...(left !== undefined && { secondsLeft: Math.ceil(left) }),
  };
}
