import { z } from "zod";
import { type Clock, toTimestamp } from "../../clock.ts";
import { callerKey, isKnown } from "../../command/caller.ts";
import { isForPerson, needsPerson } from "../../command/foreign-question.ts";
import { describeArguments, unknownArguments } from "../../command/issues.ts";
import type { RunMessage } from "../../command/outcome.ts";
import { type JsonSchema, type Schema, toJsonSchema, validate } from "../../command/schema.ts";
import { CommandError, RequestError } from "../../errors.ts";
import type { Budget } from "../../host/budget.ts";
import { thisProgram } from "../../program/program.ts";
import { withinHostLimit } from "../../task/answer-deadline.ts";
import { ProgressReader } from "../../task/progress.ts";
import { lastProgress, statusLine, timingOf } from "../../task/status-line.ts";
import { isTerminal, openQuestions, type Task } from "../../task/task.ts";
import { isUnclaimable } from "../../task/transitions.ts";
import { declaresTasks, type ListedShapes } from "../listed-shapes.ts";
import { type ResultRoom, readWithRoom } from "../outbound.ts";
import type { ListedTool } from "../parts.ts";
import { ProgressSender } from "../progress-sender.ts";
import type { ClientRequest, Result } from "../request.ts";
import { errorResult } from "../results.ts";
import { resultOrError, type TaskTelling } from "../task-wire.ts";
import { takeAnswers, toSendBack } from "./client-alone.ts";
import { followUpName } from "./follow-up-names.ts";
import { describeJob, isForModel, toJobHandle } from "./job-handle.ts";

/**
 * For clients without tasks: a slow call is answered with a handle, an ordinary tool result that says
 * what to call next, and these tools follow it up. They are never tasks themselves.
 */

export interface PlainOptions extends TaskTelling {
  readonly toolPrefix: string;
  readonly results: ResultRoom;
  /** It serves nothing but its upstreams. */
  readonly isWrap: boolean;
  readonly shapes: ListedShapes;
}

/** One follow-up call, and how long its host lets it wait. */
export interface FollowUpCall {
  readonly request: ClientRequest;
  readonly budget: Budget;
}

interface FollowUp {
  readonly summary: string;
  readonly input: Schema;
  readonly effects: "read" | "write";
  readonly run: (input: never, call: FollowUpCall) => Promise<Result>;
}

interface FollowUpParts {
  readonly followUps: ReadonlyMap<string, FollowUp>;
  readonly tools: readonly ListedTool[];
}

/** What `task_result` takes where it is the only follow-up tool. */
interface AloneInput {
  readonly job_id?: string | undefined;
  readonly wait_seconds?: number | undefined;
  readonly cancel?: boolean | undefined;
  readonly answer?: Record<string, Record<string, unknown>> | undefined;
}

/** How many jobs `task_result` names when it is asked for none. */
const newestJobs = 5;

/** Who asks a server that is about to end does not wait long, and does not ask in a tight loop. */
const leavingWaitMs = 1_000;

/** One for all: an error made anew, with its stack, is most of what ending a wait costs. */
const waitedEnough = new Error("Nobody waits for it here any longer.");

const job = z.string().min(1).describe("The job_id that the first call was answered with");

/** The tools that follow up plain handles. */
export class FollowUpTools {
  readonly #options: PlainOptions;
  #made: FollowUpParts | undefined;
  #aloneInput: Schema | undefined;

  constructor(options: PlainOptions) {
    this.#options = options;
  }

  /** Made when first needed: their schemas take several milliseconds, and the first answer does not wait for them. */
  get #parts(): FollowUpParts {
    if (this.#made !== undefined) return this.#made;
    const named = Object.entries(this.#table()).map(([name, followUp]) => [this.#nameOf(name), followUp] as const);
    const tools = named.map(([name, followUp]) => toFollowUpTool(name, followUp));
    this.#made = { followUps: new Map(named), tools };
    return this.#made;
  }

  /**
   * True for a client that is listed `task_result` alone: each of a wrapped entry, whose list should be hardly larger
   * than the upstream's own, and those that take tasks of 2026-07-28, which need it for a lost task.
   */
  isAloneFor(request: ClientRequest): boolean {
    const { isWrap, shapes } = this.#options;
    return isWrap || declaresTasks(request) || shapes.wasForTasks(request);
  }

  /** Callers who cannot be told apart have no list to look into. */
  list(request: ClientRequest): readonly ListedTool[] {
    const hasList = isKnown(request.caller);
    if (this.isAloneFor(request)) return [toAloneTool(this.#nameOf("task_result"), hasList)];
    return hasList ? this.#parts.tools : this.#parts.tools.filter(({ name }) => name !== this.#nameOf("task_list"));
  }

  /** Undefined when it is no follow-up tool. */
  call(name: string, input: unknown, call: FollowUpCall): Promise<Result> | undefined {
    const isAlone = name === this.#nameOf("task_result") && this.isAloneFor(call.request);
    const followUp = isAlone ? this.#alone : this.#parts.followUps.get(name);
    const isHidden = !isKnown(call.request.caller) && name === this.#nameOf("task_list");
    if (followUp === undefined || isHidden) return undefined;
    const schema = isAlone ? toAloneTool(name, isKnown(call.request.caller)).inputSchema : this.inputSchema(name);
    return this.#run({ name, schema: schema ?? {}, followUp }, input, call);
  }

  inputSchema(name: string): JsonSchema | undefined {
    return this.#parts.tools.find((tool) => tool.name === name)?.inputSchema;
  }

  /**
   * What a call that is not done yet is answered with. `mayBeRefused`: it stands in place of a result of another server's
   * tool. Then a client whose list had the tool's own output schema gets it as an error in text, which no client checks.
   */
  toHandle(task: Task, call: FollowUpCall & { readonly note?: string | undefined; mayBeRefused?: boolean }): Result {
    const now = this.#options.clock.now();
    const isAlone = this.isAloneFor(call.request);
    const handle = toJobHandle(task, { now, budget: call.budget, nameOf: (name) => this.#nameOf(name), isAlone });
    const texts = [describeJob(task, now, handle.next_action), ...(call.note === undefined ? [] : [call.note])];
    // A model pays for every word it reads: in the text the sentence stands once, and beside it what it takes to go on.
    const { job_id, status, questions, next_action } = handle;
    const needed = { job_id, status, ...(questions !== undefined && { questions }), next_action };
    const text = `${texts.join(" ")}\n${JSON.stringify(needed)}`;
    const answer = this.#answer(handle, texts, { taskId: task.taskId, text });
    if (call.mayBeRefused !== true || !this.#options.shapes.wasForTasks(call.request)) return answer;
    const { structuredContent: _envelope, ...plain } = answer;
    return { ...plain, isError: true };
  }

  async #run(
    { name, schema, followUp }: { name: string; schema: JsonSchema; followUp: FollowUp },
    input: unknown,
    call: FollowUpCall,
  ): Promise<Result> {
    const checked = await validate(followUp.input, input ?? {});
    const { clock } = this.#options;
    if (!checked.ok)
      return errorResult(describeArguments(name, checked.issues, input, unknownArguments(schema, input)), clock);
    try {
      const { request, budget } = call;
      return await withinHostLimit(
        followUp.run(checked.value as never, call),
        { clock, arrivedAt: request.arrivedAt, budget },
        () =>
          errorResult(`${name} got no answer, because the task store does not respond. Call it again later.`, clock),
      );
    } catch (error) {
      // What a model can mend is told to the model.
      if (error instanceof RequestError || error instanceof CommandError) return errorResult(error.message, clock);
      throw error;
    }
  }

  /** `task_result` for clients that are listed no other follow-up tool. */
  get #alone(): FollowUp {
    this.#aloneInput ??= z.object({
      job_id: z.string().min(1).optional(),
      wait_seconds: z.number().min(0).optional(),
      seen: z.number().optional(),
      cancel: z.boolean().optional(),
      answer: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
    });
    return {
      summary: "",
      effects: "write",
      input: this.#aloneInput,
      run: (input: AloneInput, call) => this.#followUpAlone(input, call),
    };
  }

  async #followUpAlone({ job_id, cancel, answer, wait_seconds }: AloneInput, call: FollowUpCall): Promise<Result> {
    if (cancel === true && answer !== undefined)
      throw new CommandError("`cancel` and `answer` exclude each other; leave one out.");
    if (job_id === undefined) {
      if (cancel === true || answer !== undefined || !isKnown(call.request.caller))
        throw new CommandError("`job_id` is missing; it is in the answer to the first call.");
      return await this.#list({ limit: newestJobs }, call);
    }
    if (cancel === true) return await this.#cancel(job_id, call);
    if (answer !== undefined) await this.#giveAnswers({ job_id, answers: answer, field: "answer" }, call);
    return await this.#result({ job_id, ...(wait_seconds !== undefined && { wait_seconds }) }, call);
  }

  #table(): Record<string, FollowUp> {
    return {
      task_result: {
        summary: "Get the result of a job; waits for it a while, and says how far it is when it is not done",
        effects: "read",
        input: z.object({
          job_id: job,
          wait_seconds: z
            .number()
            .min(0)
            .optional()
            .describe("How long to wait at most (default: as long as this host allows)"),
          seen: z.number().optional().describe("The `seen` of the last answer"),
        }),
        run: (input: { job_id: string; wait_seconds?: number }, call) => this.#result(input, call),
      },
      task_status: {
        summary: "See how far a job is, and what it asks, without waiting",
        effects: "read",
        input: z.object({ job_id: job }),
        run: async (input: { job_id: string }, call) => this.toHandle(await this.#get(input.job_id, call), call),
      },
      task_cancel: {
        summary: "Stop a job",
        effects: "write",
        input: z.object({ job_id: job }),
        run: (input: { job_id: string }, call) => this.#cancel(input.job_id, call),
      },
      task_list: {
        summary: "List your jobs, newest first",
        effects: "read",
        input: z.object({
          limit: z.int().min(1).max(100).default(20).describe("How many"),
          cursor: z.string().optional().describe("The next_cursor of the last page"),
        }),
        run: (input: { limit: number; cursor?: string }, call) => this.#list(input, call),
      },
      task_answer: {
        summary: "Answer what a job asks; task_status shows its questions",
        effects: "write",
        input: z.object({
          job_id: job,
          answers: z
            .record(z.string(), z.record(z.string(), z.unknown()))
            .describe("For each question's key an object with its fields"),
        }),
        run: async (input: { job_id: string; answers: Record<string, Record<string, unknown>> }, call) => {
          await this.#giveAnswers({ ...input, field: "answers" }, call);
          return this.toHandle(await this.#get(input.job_id, call), call);
        },
      },
    };
  }

  async #get(jobId: string, call: FollowUpCall): Promise<Task> {
    const engine = await this.#options.openEngine();
    return await engine.get(callerKey(call.request.caller), jobId);
  }

  async #result(input: { job_id: string; wait_seconds?: number }, call: FollowUpCall): Promise<Result> {
    await takeAnswers(await this.#options.openEngine(), input.job_id, call.request);
    const live = await this.#waitAwhile(input, call);
    if (live !== undefined) return toSendBack(live, call.request) ?? this.toHandle(live, call);
    const ended = await readWithRoom(call.request, this.#options.results, () => this.#get(input.job_id, call));
    const { find, isDebug } = this.#options;
    return isTerminal(ended) ? resultOrError(ended, find, isDebug) : this.toHandle(ended, call);
  }

  /** The task as it is then; undefined when it has ended. */
  async #waitAwhile(input: { job_id: string; wait_seconds?: number }, call: FollowUpCall): Promise<Task | undefined> {
    const { clock, openEngine } = this.#options;
    const engine = await openEngine();
    let latest = await engine.get(callerKey(call.request.caller), input.job_id);
    const { handleAfterMs, heartbeatMs } = call.budget;
    const { leaving } = engine;
    const waitMs = Math.min(
      (input.wait_seconds ?? Number.POSITIVE_INFINITY) * 1000,
      handleAfterMs - (clock.monotonic() - call.request.arrivedAt),
      leaving.aborted ? leavingWaitMs : Number.POSITIVE_INFINITY,
    );
    const stop = new AbortController();
    const onGone = () => stop.abort(waitedEnough);
    const cancelTimer = clock.after(waitMs, onGone);
    const { signal } = call.request;
    signal.addEventListener("abort", onGone, { once: true });
    const stopListening = engine.onLeaving(onGone);
    const sender = this.#sender(call.request);
    const reader = new ProgressReader(latest);
    const timing = () => timingOf(latest, clock.now());
    const onTask = (task: Task) => {
      latest = task;
      const update = reader.next(task);
      if (update !== undefined) sender.update(update, timing());
    };
    const stopBeating = heartbeatMs === undefined ? undefined : repeat(clock, heartbeatMs, () => sender.beat(timing()));
    const waitsForNothing = (task: Task) => input.wait_seconds === undefined && isUnclaimable(task);
    const isDone = (task: Task) =>
      isTerminal(task) ||
      waitsForNothing(task) ||
      openQuestions(task).some(isForModel) ||
      toSendBack(task, call.request) !== undefined;
    try {
      latest = await engine.wait(callerKey(call.request.caller), input.job_id, {
        until: isDone,
        signal: stop.signal,
        onTask,
      });
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      cancelTimer();
      stopBeating?.();
      sender.finish();
      signal.removeEventListener("abort", onGone);
      stopListening();
    }
    return isTerminal(latest) ? undefined : latest;
  }

  async #cancel(jobId: string, call: FollowUpCall): Promise<Result> {
    const engine = await this.#options.openEngine();
    const isCancelled = await engine.cancel(callerKey(call.request.caller), jobId);
    const task = await engine.get(callerKey(call.request.caller), jobId);
    const text = isCancelled
      ? `${task.command} was cancelled.${lastProgress(task)}`
      : `${task.command} had ended already (${task.status}).`;
    return this.#answer({ job_id: task.taskId, status: task.status }, [text], { taskId: task.taskId });
  }

  async #list(input: { limit: number; cursor?: string }, call: FollowUpCall): Promise<Result> {
    const engine = await this.#options.openEngine();
    const page = await engine.list(callerKey(call.request.caller), {
      limit: input.limit,
      ...(input.cursor !== undefined && { cursor: input.cursor }),
    });
    const { clock } = this.#options;
    const jobs = page.tasks.map((task) => ({
      job_id: task.taskId,
      tool: task.command,
      status: task.status,
      message: statusLine(task, clock.now()),
      created_at: toTimestamp(task.createdAt),
    }));
    const count = jobs.length === 1 ? "1 job" : `${jobs.length} jobs`;
    const isAlone = this.isAloneFor(call.request);
    const said = isAlone ? `${count}, newest first. Get a result with its job_id.` : `${count}.`;
    const next = isAlone || page.nextCursor === undefined ? {} : { next_cursor: page.nextCursor };
    return this.#answer({ jobs, ...next }, [jobs.length === 0 ? "There are no jobs." : said]);
  }

  /** `field`: the name that the tool's arguments have for the answers. */
  async #giveAnswers(
    input: { job_id: string; answers: Record<string, Record<string, unknown>>; field: string },
    call: FollowUpCall,
  ): Promise<void> {
    const engine = await this.#options.openEngine();
    const task = await engine.get(callerKey(call.request.caller), input.job_id);
    const open = openQuestions(task).filter(isForPerson);
    const confirmation = open.find((question) => needsPerson(question) && Object.hasOwn(input.answers, question.key));
    // A model must not confirm for its user.
    if (confirmation !== undefined) {
      const typed = thisProgram.typed(`tasks answer ${task.taskId}`);
      const where = typed === undefined ? ", in the app that runs this server" : `; they can with: ${typed}`;
      throw new CommandError(`Only a person may answer «${confirmation.message}»${where}`);
    }
    const known = open.filter(({ key }) => Object.hasOwn(input.answers, key));
    if (known.length === 0)
      throw new CommandError(
        open.length === 0
          ? "This job asks nothing right now."
          : `\`${input.field}\` must hold one of ${open.map(({ key }) => key).join(", ")}.`,
      );
    const answers = Object.fromEntries(
      known.map(({ key }) => [key, { action: "accept" as const, content: input.answers[key] ?? {} }]),
    );
    await engine.answer(callerKey(call.request.caller), task.taskId, answers);
  }

  #answer(
    data: object,
    texts: readonly string[],
    { taskId, text }: { readonly taskId?: string; readonly text?: string } = {},
  ): Result {
    const timestamp = toTimestamp(this.#options.clock.now());
    const messages: RunMessage[] = texts.map((text) => ({ type: "info", text, timestamp }));
    const envelope = { success: true, data, messages };
    return {
      content: [{ type: "text", text: text ?? `${texts.join(" ")}\n${JSON.stringify(envelope)}` }],
      structuredContent: envelope,
      ...(taskId !== undefined && { _meta: { "meanwhile/call": { taskId } } }),
    } as Result;
  }

  #sender(request: ClientRequest): ProgressSender {
    const send = (params: Record<string, unknown>) => request.notify("notifications/progress", params);
    return new ProgressSender({ token: request.progressToken, send, monotonic: () => this.#options.clock.monotonic() });
  }

  #nameOf(name: string): string {
    return followUpName(name, this.#options.toolPrefix);
  }
}

/** Does something again and again until the returned function is called. */
function repeat(clock: Clock, everyMs: number, act: () => void): () => void {
  let cancel = clock.after(everyMs, function again() {
    act();
    cancel = clock.after(everyMs, again);
  });
  return () => cancel();
}

function toFollowUpTool(name: string, followUp: FollowUp): ListedTool {
  return {
    name,
    description: followUp.summary,
    inputSchema: toJsonSchema(followUp.input, "input"),
    annotations: { readOnlyHint: followUp.effects === "read", destructiveHint: false, idempotentHint: true },
    _meta: { "meanwhile/tool": { async: false } },
  };
}

/**
 * `task_result` as it is listed alone. Every list of a wrapped entry has it, so its text is short. `hasList`: the caller
 * has jobs to look into.
 */
function toAloneTool(name: string, hasList: boolean): ListedTool {
  const newest = hasList ? " Without job_id: your newest jobs." : "";
  return {
    name,
    description: `Wait for a job's result. cancel stops it, answer fills in its questions.${newest}`,
    inputSchema: {
      type: "object",
      properties: {
        job_id: { type: "string" },
        wait_seconds: { type: "number" },
        seen: { type: "number" },
        cancel: { type: "boolean" },
        answer: { type: "object" },
      },
      ...(!hasList && { required: ["job_id"] }),
    },
    annotations: { destructiveHint: false },
    _meta: { "meanwhile/tool": { async: false } },
  };
}
