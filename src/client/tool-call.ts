import { RequestError, RpcCode } from "../errors.ts";
import { createId } from "../ids.ts";
import { fieldsOf, isObject, type Json, textOf } from "../wire/json.ts";
import { ConnectionError, cut, ServerError } from "../wire/peer-errors.ts";
import { paramHeaders } from "../wire/request-envelope.ts";
import { legacyRevision, modernRevision } from "../wire/revisions.ts";
import type { Answer, CallOptions, Question, Tool, ToolResult } from "./client.ts";
import { InputRequired } from "./client-errors.ts";
import { askOrFail, inTurn, toQuestion, toReply } from "./follow/asked-questions.ts";
import { type ClientFacts, findTask, task2025 } from "./follow/find-task.ts";
import { cancelSoon, FollowLimits, follow, toDoubt } from "./follow/follow-to-end.ts";
import { followUpPrefix, isFollowable, readHandle, toSnapshot as toPlainSnapshot } from "./follow/plain-handle.ts";
import { PlainJob } from "./follow/plain-job.ts";
import type { RemoteTask, Snapshot } from "./follow/remote-task.ts";
import { fromNotification, ProgressFilter } from "./follow/reported-progress.ts";
import { toSnapshot as toSnapshot2025 } from "./follow/task-2025.ts";
import { Task2026, toSnapshot as toSnapshot2026 } from "./follow/task-2026.ts";
import { JobNews, ToldJob } from "./follow/told-job.ts";
import { closest } from "./tool-list.ts";
import { firstTextOf, toToolResult } from "./tool-result.ts";

/** One tools/call, from its first message to its result: whatever a server answers with is followed. */

const maxRounds = 20;

/** What a call came to: its result, or work that goes on. */
export type Ending = { readonly result: ToolResult } | { readonly task: RemoteTask; readonly first: Snapshot };

/** Calls a tool and follows it to its result. */
export async function callToEnd(
  facts: ClientFacts,
  name: string,
  args: Json,
  options: CallOptions,
): Promise<ToolResult> {
  const limits = new FollowLimits(options);
  const call = new ToolCall(facts, name, args, options, limits);
  try {
    const ending = await call.begin();
    if ("result" in ending) return ending.result;
    return await follow(ending.task, { options, limits, filter: call.filter, first: ending.first });
  } finally {
    call.close();
    limits.close();
  }
}

/** Calls a tool and resolves as soon as the work goes on without us. */
export async function callDetached(
  facts: ClientFacts,
  name: string,
  args: Json,
  options: CallOptions,
): Promise<Ending> {
  const limits = new FollowLimits(options);
  const call = new ToolCall(facts, name, args, { ...options, asTask: true }, limits);
  try {
    const ending = await call.begin();
    if ("task" in ending) options.onTask?.(ending.first.state);
    return ending;
  } finally {
    call.close();
    limits.close();
  }
}

class ToolCall {
  readonly filter: ProgressFilter;
  readonly #facts: ClientFacts;
  readonly #name: string;
  readonly #args: Json;
  readonly #options: CallOptions;
  readonly #limits: FollowLimits;
  readonly #token = createId();
  readonly #ask: ((question: Question) => Promise<Answer>) | undefined;
  readonly #jobs: JobNews;
  readonly #releases: (() => void)[] = [];

  constructor(facts: ClientFacts, name: string, args: Json, options: CallOptions, limits: FollowLimits) {
    this.#facts = facts;
    this.#name = name;
    this.#args = args;
    this.#options = options;
    this.#limits = limits;
    this.filter = new ProgressFilter(options.onProgress);
    this.#ask = options.onInput === undefined ? undefined : inTurn(options.onInput);
    this.#jobs = new JobNews(facts.connection);
    this.#releases.push(facts.connection.on("notifications/progress", (params) => this.#onProgress(params)));
    this.#releases.push(() => this.#jobs.close());
  }

  close(): void {
    for (const release of this.#releases) release();
  }

  #onProgress(params: Json): void {
    if (params.progressToken !== this.#token) return;
    try {
      this.filter.tell("notification", fromNotification(params));
    } catch (error) {
      // The caller's own callback threw; there is nobody else to tell.
      this.#limits.fail(error);
    }
  }

  async begin(): Promise<Ending> {
    const { connection } = this.#facts;
    try {
      return connection.dialect.isModern ? await this.#callModern() : await this.#callLegacy();
    } catch (error) {
      this.#limits.signal.throwIfAborted();
      const isInDoubt =
        error instanceof ConnectionError && !error.isUnsent && (error.status === undefined || error.status >= 500);
      if (isInDoubt) throw toDoubt(error, `Whether ${cut(this.#name, 100)} has run is not known.`);
      throw error instanceof ServerError ? await this.#toUnknownTool(error) : error;
    }
  }

  /** 2026-07-28: the server decides whether it becomes a task; it may send us back with questions first. */
  async #callModern(): Promise<Ending> {
    let rest: Json = {};
    for (let round = 0; round < maxRounds; round++) {
      const result = await this.#send(rest);
      const { resultType = "complete" } = result;
      if (resultType === "complete") return await this.#conclude(result);
      if (resultType === "task") return this.#toTask2026(result);
      if (resultType !== "input_required")
        throw new RequestError(
          "request",
          `The server answered with a result of the unknown type ${JSON.stringify(cut(String(resultType), 60))}.`,
        );
      rest = await this.#answerAll(result);
    }
    throw new RequestError("request", `The server has asked ${maxRounds} times without coming to a result.`);
  }

  #toTask2026(result: Json): Ending {
    const first = toSnapshot2026(result);
    if (first === undefined)
      throw new RequestError("request", "The server answered with a task that has no id or no status.");
    return { task: new Task2026(this.#facts.connection, first.state.taskId), first };
  }

  async #answerAll({ inputRequests, requestState }: Json): Promise<Json> {
    const responses: Record<string, Json> = {};
    for (const [key, request] of Object.entries(fieldsOf(inputRequests))) {
      const question = toQuestion(key, request, undefined);
      const unknown = {
        key,
        message: textOf(fieldsOf(request).method) ?? "something unknown",
        schema: {},
        taskId: undefined,
      };
      if (question === undefined || this.#ask === undefined)
        throw new InputRequired(question ?? unknown, "call again with `onInput`.");
      responses[key] = toReply(await this.#ask(question));
    }
    return { inputResponses: responses, ...(requestState !== undefined && { requestState }) };
  }

  async #callLegacy(): Promise<Ending> {
    // While the call itself is open, nobody to answer means that it cannot go on.
    const caller = { ask: this.#ask, fail: (error: unknown) => this.#limits.fail(error) };
    const asker = {
      taskId: undefined as string | undefined,
      ask: (question: Question) => askOrFail(question, caller, "call again with `onInput`."),
    };
    this.#releases.push(this.#facts.askers.add(asker));
    const task = (await this.#asksForTask())
      ? { task: { ...(this.#options.ttlMs !== undefined && { ttl: this.#options.ttlMs }) } }
      : {};
    const result = await this.#send(task);
    const first = isObject(result.task) ? toSnapshot2025(result.task) : undefined;
    if (first === undefined) return await this.#conclude(result);
    asker.taskId = first.state.taskId;
    return { task: task2025(this.#facts, first.state.taskId), first };
  }

  /**
   * 2025-11-25: asking is our part, where the tool allows it: when the caller wants it, or the tool says that it takes
   * long.
   */
  async #asksForTask(): Promise<boolean> {
    const { connection, tools } = this.#facts;
    if (connection.server.tasks !== legacyRevision) return false;
    const tool = await tools.find(this.#name, this.#limits.signal);
    const support = tool?.execution?.taskSupport;
    if (support === "required") return true;
    const isLong = fieldsOf(tool?._meta?.["meanwhile/tool"]).async === true;
    return support === "optional" && (this.#options.asTask === true || isLong);
  }

  /** 2026-07-28 has no way to ask for a task; our own servers take this word for it, and others leave it unread. */
  get #hintsAtTask(): boolean {
    return this.#options.asTask === true && this.#facts.connection.server.tasks === modernRevision;
  }

  async #send(more: Json): Promise<Json> {
    const { connection, tools } = this.#facts;
    const { idempotencyKey, isNew, ttlMs } = this.#options;
    const _meta = {
      progressToken: this.#token,
      ...(isNew === true && { "meanwhile/new": true }),
      ...(idempotencyKey !== undefined && { "meanwhile/idempotencyKey": idempotencyKey }),
      ...(this.#hintsAtTask && { "meanwhile/task": { ...(ttlMs !== undefined && { ttlMs }) } }),
    };
    const params = { name: this.#name, arguments: this.#args, ...more, _meta };
    // With a key the server knows a repeated call for what it is.
    const options = {
      signal: this.#limits.signal,
      isRepeatable: idempotencyKey !== undefined,
      canAsk: this.#ask !== undefined,
      onLate: (result: unknown) => this.#cancelLate(fieldsOf(result)),
    };
    const known = tools.known(this.#name);
    const headers = known === undefined ? {} : paramHeaders(known.inputSchema, this.#args);
    try {
      return await connection.request("tools/call", params, { ...options, headers });
    } catch (error) {
      if (!(error instanceof ServerError) || error.code !== RpcCode.HeaderMismatch || known !== undefined) throw error;
      // The tool wants some arguments as headers, too; its schema says which. Nothing was run yet.
      const tool = await tools.find(this.#name, this.#limits.signal);
      return await connection.request("tools/call", params, {
        ...options,
        headers: paramHeaders(tool?.inputSchema ?? {}, this.#args),
      });
    }
  }

  /** Work that was handed out while the call was being taken back is work that nobody wants. */
  async #cancelLate(result: Json): Promise<void> {
    const taskId =
      textOf(fieldsOf(result.task).taskId) ??
      (result.resultType === "task" ? textOf(result.taskId) : readHandle(result)?.jobId);
    if (taskId !== undefined && this.#limits.mustCancel)
      await findTask(this.#facts, taskId).then(cancelSoon, () => undefined);
  }

  /** A result, or a handle that looks like one. */
  async #conclude(result: Json): Promise<Ending> {
    if (result.isError === true) await this.#refuseUnknownTool(result);
    const handle = readHandle(result);
    if (handle === undefined) return { result: toToolResult(result) };
    const { connection, askers, tools } = this.#facts;
    // Not given up halfway: only who knows the tools can cancel the job.
    const listed = await tools.list();
    const facts = { connection, jobId: handle.jobId, prefix: followUpPrefix(listed), next: handle.next };
    // A result may happen to look like a handle; one that leads nowhere is just a result.
    if (!isFollowable(handle, listed)) return { result: toToolResult(result) };
    const first = toPlainSnapshot(handle);
    if (handle.next !== undefined) return { task: new PlainJob(facts), first };
    return { task: new ToldJob(facts, askers, this.#jobs), first };
  }

  /** Some servers put an unknown tool into a result. */
  async #refuseUnknownTool(result: Json): Promise<void> {
    if (looksUnknown(firstTextOf(result))) await this.#refuseUnlisted();
  }

  async #toUnknownTool(error: ServerError): Promise<unknown> {
    if (error.code !== RpcCode.Params && error.code !== RpcCode.Method && !looksUnknown(error.message)) return error;
    return await this.#refuseUnlisted().then(
      () => error,
      (refusal: unknown) => (refusal instanceof RequestError ? refusal : error),
    );
  }

  async #refuseUnlisted(): Promise<void> {
    const listed: readonly Tool[] = await this.#facts.tools.list(this.#limits.signal);
    if (listed.some(({ name }) => name === this.#name)) return;
    const guess = closest(
      this.#name,
      listed.map(({ name }) => name),
    );
    throw new RequestError(
      "params",
      `The server has no tool ${JSON.stringify(cut(this.#name, 100))}${guess === undefined ? "." : `; did you mean ${cut(guess, 100)}?`}`,
    );
  }
}

function looksUnknown(text: string): boolean {
  return /not found|unknown tool/i.test(text);
}
