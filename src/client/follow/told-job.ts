import { fieldsOf, isObject, type Json, numberOf, textOf } from "../../wire/json.ts";
import { ServerError } from "../../wire/peer-errors.ts";
import type { Answer, ToolResult } from "../client.ts";
import type { ServerConnection } from "../connection/server-connection.ts";
import { toToolResult } from "../tool-result.ts";
import { type Askers, askOrFail } from "./asked-questions.ts";
import { type PlainFacts, PlainJob } from "./plain-job.ts";
import type { LookOptions, RemoteTask, Snapshot, Watcher } from "./remote-task.ts";
import { fromNotification } from "./reported-progress.ts";

/**
 * Job notifications: the call was answered with a job, and the server tells by itself how it goes on and what came out
 * of it. Where nothing can be told, because the connection was lost or has no stream for it, the job is followed with
 * `task_result`.
 */

/** What was told before anybody knew which job to wait for. */
export class JobNews {
  readonly #results = new Map<string, Json>();
  readonly #release: () => void;

  constructor(connection: ServerConnection) {
    this.#release = connection.on("notifications/tool_result", (params) => {
      const jobId = textOf(params.job_id);
      if (jobId !== undefined && this.#results.size < 1_000) this.#results.set(jobId, fieldsOf(params.result));
    });
  }

  resultOf(jobId: string): Json | undefined {
    return this.#results.get(jobId);
  }

  close(): void {
    this.#release();
  }
}

export class ToldJob implements RemoteTask {
  readonly taskId: string;
  readonly #connection: ServerConnection;
  readonly #askers: Askers;
  readonly #news: JobNews;
  readonly #plain: PlainJob;
  readonly #canFollowUp: boolean;
  #isLost = false;

  constructor(facts: PlainFacts, askers: Askers, news: JobNews) {
    this.taskId = facts.jobId;
    this.#connection = facts.connection;
    this.#askers = askers;
    this.#news = news;
    this.#plain = new PlainJob(facts);
    this.#canFollowUp = facts.prefix !== undefined;
  }

  get isWaiting(): boolean {
    return this.#canFollowUp && (this.#isLost || !this.#connection.isPushed);
  }

  async look(options: LookOptions): Promise<Snapshot> {
    const told = this.#news.resultOf(this.taskId);
    if (told !== undefined) return toEnd(this.taskId, told);
    return this.#canFollowUp
      ? await this.#plain.look({ ...options, wait: this.isWaiting && options.wait === true })
      : working(this.taskId);
  }

  watch(watcher: Watcher): () => void {
    const how = `answer the job ${this.taskId}, then ask for its result again.`;
    const isOurs = (params: Json) => params.job_id === this.taskId;
    const releases = [
      this.#connection.on(
        "notifications/progress",
        (params) => void (isOurs(params) && watcher.onProgress(fromNotification(params))),
      ),
      this.#connection.on(
        "notifications/tool_result",
        (params) => void (isOurs(params) && watcher.onNews(toEnd(this.taskId, fieldsOf(params.result)))),
      ),
      this.#askers.add({ taskId: this.taskId, ask: (question) => askOrFail(question, watcher, how) }),
    ];
    watcher.onTold(this.#connection.isPushed);
    void this.#connection.lost().then((why) => {
      this.#isLost = true;
      if (this.#canFollowUp && this.#connection.isRestorable) watcher.onNews(working(this.taskId));
      else watcher.fail(why);
    });
    const told = this.#news.resultOf(this.taskId);
    if (told !== undefined) watcher.onNews(toEnd(this.taskId, told));
    return () => {
      for (const release of releases) release();
    };
  }

  async answerAsked(snapshot: Snapshot, watcher: Watcher): Promise<void> {
    // Told about by the server, a question comes as its own request.
    if (this.isWaiting) await this.#plain.answerAsked(snapshot, watcher);
  }

  result(): Promise<ToolResult> {
    return this.#plain.result();
  }

  answer(answers: Readonly<Record<string, Answer>>): Promise<void> {
    return this.#plain.answer(answers);
  }

  cancel(signal?: AbortSignal): Promise<void> {
    return this.#plain.cancel(signal);
  }
}

function working(taskId: string): Snapshot {
  return { state: { taskId, status: "working" } };
}

/** The envelope of a notification as the tool result that it stands for. */
function toEnd(taskId: string, { content, error, ...envelope }: Json): Snapshot {
  const isError = envelope.success === false;
  const status = isError ? "failed" : "completed";
  if (isObject(error))
    return { state: { taskId, status }, error: new ServerError({ ...error, code: numberOf(error.code) ?? 0 }) };
  if (envelope.passedOn === true) return { state: { taskId, status }, result: toToolResult(fieldsOf(envelope.data)) };
  const result = {
    content: Array.isArray(content) ? content : [{ type: "text", text: JSON.stringify(envelope) }],
    structuredContent: envelope,
    ...(isError && { isError: true }),
  } as unknown as ToolResult;
  return { state: { taskId, status }, result };
}
