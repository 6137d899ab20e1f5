import { type Clock, toTimestamp } from "../../clock.ts";
import { toEnvelope } from "../../command/envelope.ts";
import { isForPerson } from "../../command/foreign-question.ts";
import type { Outcome, RunMessage } from "../../command/outcome.ts";
import type { Logger } from "../../log.ts";
import { thisProgram } from "../../program/program.ts";
import type { Engine } from "../../task/engine.ts";
import { estimatedSeconds, statusLine, toWords } from "../../task/status-line.ts";
import { isTerminal, openQuestions, type Task } from "../../task/task.ts";
import { outcomeOf } from "../../task/task-outcome.ts";
import type { ClientConnection, Result } from "../request.ts";
import { noteUnlessGone } from "./note-unless-gone.ts";

/**
 * Job notifications, for clients before 2026-07-28 that declare `experimental["meanwhile/jobs"]`: the call is answered
 * at once with an estimate; then come `notifications/progress` with `job_id` and a part from 0 to 1, and at the end,
 * once, `notifications/tool_result` with the envelope. Both go beyond the protocol, which the client has asked for.
 */
export const jobsCapability = "meanwhile/jobs";

export interface JobOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Logger;
  readonly isDebug: boolean;
  readonly connection: ClientConnection;
  readonly caller: string;
  readonly progressToken: string | number | undefined;
}

/** What the call is answered with. */
export function toJobAnswer(task: Task, clock: Clock, note: string | undefined): Result {
  const estimate = estimatedSeconds(task);
  const timestamp = toTimestamp(clock.now());
  const text = `Operation ${task.status === "queued" ? "queued" : "running"}.${estimate === undefined ? "" : ` Estimated runtime: ${toWords(estimate)}.`}`;
  const messages: RunMessage[] = [text, ...(note === undefined ? [] : [note])].map((words) => ({
    type: "info",
    text: words,
    timestamp,
  }));
  const data = {
    job_id: task.taskId,
    ...(estimate !== undefined && { estimated_runtime_seconds: estimate }),
    status: task.status === "queued" ? "queued" : "running",
  };
  const envelope = { success: true, data, messages };
  return {
    content: [{ type: "text", text: JSON.stringify(envelope) }],
    structuredContent: envelope,
    _meta: { "meanwhile/call": { taskId: task.taskId } },
  } as Result;
}

/** Tells the client how the job goes on, to its end or the connection's. */
export async function announceJob(task: Task, options: JobOptions): Promise<void> {
  const { engine, clock, connection, caller, log } = options;
  const news = new JobNews(task, options);
  const questions = connection.tasks2025?.questions.follow(task, caller);
  const onTask = (latest: Task) => {
    questions?.look(latest);
    news.tell(latest);
  };
  try {
    await engine.wait(caller, task.taskId, { signal: connection.closed, onTask });
    // The result is read when there is somebody to read it.
    await canPush(connection);
    const ended = await engine.get(caller, task.taskId);
    if (!isTerminal(ended)) return;
    connection.notify("notifications/tool_result", {
      job_id: task.taskId,
      result: toJobResult(outcomeOf(ended), options.isDebug),
      timestamp: toTimestamp(clock.now()),
    });
  } catch (error) {
    noteUnlessGone(error, connection.closed, log);
  } finally {
    news.stop();
    questions?.stop();
  }
}

/**
 * The envelope of a notification. Where somebody else's tool has answered, `data` is its result word for word, and
 * `passedOn` says so; an error of the protocol stands beside the envelope.
 */
function toJobResult(outcome: Outcome, withLog: boolean): object {
  const envelope = toEnvelope(outcome, withLog);
  if (outcome.ending === "cancelled") return envelope;
  if (outcome.foreign !== undefined) return { ...envelope, data: outcome.foreign, passedOn: true };
  if (outcome.ending === "failed") return { ...envelope, ...(outcome.rpc !== undefined && { error: outcome.rpc }) };
  return { ...envelope, ...(outcome.content !== undefined && { content: outcome.content }) };
}

/** The progress of one job: strictly rising. What is said while no stream is open is kept, the newest of it. */
class JobNews {
  readonly #taskId: string;
  readonly #options: JobOptions;
  readonly stop: () => void;
  #sent = -1;
  #asked = 0;
  #untold: (() => void) | undefined;

  constructor({ taskId }: Task, options: JobOptions) {
    this.#taskId = taskId;
    this.#options = options;
    this.stop = options.connection.onStream(() => {
      this.#untold?.();
      this.#untold = undefined;
    });
  }

  tell(latest: Task): void {
    const { progress } = latest;
    const open = isTerminal(latest) ? [] : openQuestions(latest);
    if (open.length > 0 && latest.questions.length > this.#asked) {
      this.#asked = latest.questions.length;
      const line = statusLine(latest, this.#options.clock.now());
      const typed = open.some(isForPerson) ? thisProgram.typed(`tasks answer ${this.#taskId}`) : undefined;
      const where = typed === undefined ? "" : ` (in a terminal: ${typed})`;
      this.#send(Math.max(0, this.#sent) + 1e-6, `${line}${where}`);
    }
    const part = progress?.percentage === undefined ? undefined : progress.percentage / 100;
    if (part !== undefined && part > this.#sent) this.#send(part, progress?.message ?? "");
  }

  #send(progress: number, message: string): void {
    const { connection, progressToken = this.#taskId, clock } = this.#options;
    const timestamp = toTimestamp(clock.now());
    const params = { progressToken, job_id: this.#taskId, progress, message, timestamp };
    const say = () => connection.notify("notifications/progress", params);
    this.#sent = progress;
    if (connection.canPush) say();
    else this.#untold = say;
  }
}

/** Resolves once the client holds a stream open; what is sent before would be lost. */
async function canPush(connection: ClientConnection): Promise<void> {
  if (connection.canPush || connection.closed.aborted) return;
  await new Promise<void>((resolve) => {
    const stop = connection.onStream(() => {
      stop();
      resolve();
    });
    connection.closed.addEventListener("abort", () => resolve(), { once: true });
  });
}
