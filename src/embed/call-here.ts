import { callerIn, type ForCaller } from "../auth/app-caller.ts";
import { toTimestamp } from "../clock.ts";
import { ownArguments } from "../command/aliases.ts";
import { callerKey, detailsOf } from "../command/caller.ts";
import type { Catalog, CatalogEntry } from "../command/catalog.ts";
import type { Answer, Origin, Question } from "../command/context.ts";
import { closest } from "../command/suggest.ts";
import { CommandError, messageOf, ProtocolError, RequestError, RpcCode } from "../errors.ts";
import { withReferences } from "../mcp/call-references.ts";
import { errorResult, toCallResult } from "../mcp/results.ts";
import { resultOrError } from "../mcp/task-wire.ts";
import type { RuntimeCore } from "../runtime/runtime.ts";
import type { CallEnding, CallingClient, CallRequest, CallWatcher } from "../task/call-request.ts";
import type { EndedCall } from "../task/ended-call.ts";
import type { Engine } from "../task/engine.ts";
import { ProgressReader } from "../task/progress.ts";
import { isTerminal, type Task, type TaskProgress, type TaskQuestion } from "../task/task.ts";
import { toProgress } from "../task/task-outcome.ts";
import type { Json } from "../wire/json.ts";
import { asCallResult, type CallResult } from "./result-copy.ts";

export interface ServerCallOptions extends ForCaller {
  /** Takes the call back: the run is told to stop, and the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: TaskProgress) => void) | undefined;
  /**
   * Answers what the command asks, confirmations included. Without it a call that asks becomes a task, and waits until
   * somebody answers that: `tasks.answer`.
   */
  readonly answer?: ((question: Question) => Answer | Promise<Answer>) | undefined;
}

/** Who calls waits as long as it takes, and follows a task by its id where it becomes one. */
const client: CallingClient = {
  asked: undefined,
  canTakeTask: false,
  canTakeUnasked: false,
  declaresTasks: false,
  takesJobs: false,
  canFollowUp: true,
};
const limit = { limitMs: undefined, isExtended: false, host: "the program itself" };

/** Calls a tool of this very process; what a client would get in the end, and a JSON-RPC error as a rejection. */
export async function callHere(
  core: RuntimeCore,
  called: { readonly name: string; readonly input: unknown },
  options: ServerCallOptions,
): Promise<CallResult> {
  const { clock, serving } = core;
  options.signal?.throwIfAborted();
  const authentication = { caller: callerIn(core, options.caller) };
  await serving.served.gate.authorize(authentication, "tools/call", { name: called.name });
  const catalog = serving.catalogFor(authentication);
  const entry = catalog.get(called.name);
  if (entry === undefined) {
    const problem = catalog.problemOf(called.name);
    if (problem === undefined) throw unknownTool(catalog, called.name);
    return asCallResult(errorResult(`${called.name} could not be loaded from ${problem.file}: ${problem.text}`, clock));
  }
  try {
    return asCallResult(await new CallHere(core, entry, options).answer(called));
  } catch (error) {
    options.signal?.throwIfAborted();
    // What a model could mend is a result, as at every door.
    if (error instanceof CommandError) return asCallResult(errorResult(error.message, clock));
    throw error;
  }
}

function unknownTool(catalog: Catalog, name: unknown): Error {
  const guess = closest(
    String(name),
    catalog.entries.map(({ toolName }) => toolName),
  );
  return new ProtocolError(
    RpcCode.Params,
    `Unknown tool ${JSON.stringify(name)}${guess === undefined ? "" : `; did you mean ${guess}?`}`,
  );
}

class CallHere implements CallWatcher {
  readonly #core: RuntimeCore;
  readonly #entry: CatalogEntry;
  readonly #options: ServerCallOptions;
  readonly #caller: string;
  readonly #origin: Origin;
  readonly #gone: AbortSignal;
  #engine: Engine | undefined;

  constructor(core: RuntimeCore, entry: CatalogEntry, options: ServerCallOptions) {
    this.#core = core;
    this.#entry = entry;
    this.#options = options;
    const caller = callerIn(core, options.caller);
    this.#caller = callerKey(caller);
    const details = detailsOf(caller);
    this.#origin = { door: "mcp", folder: undefined, ...(details !== undefined && { client: { caller: details } }) };
    this.#gone = options.signal ?? new AbortController().signal;
  }

  async answer({ name, input }: { readonly name: string; readonly input: unknown }): Promise<Json> {
    const calls = await this.#core.tasks.calls();
    this.#engine = calls.engine;
    const own = ownArguments(this.#entry, name, input);
    const request = this.#toRequest(this.#entry.command.references ? withReferences(own, undefined) : own);
    const ending = await calls.call(request);
    return await this.#conclude(calls.engine, ending);
  }

  progress(update: Parameters<CallWatcher["progress"]>[0]): void {
    this.#tell(toProgress(update));
  }

  log(): void {}

  beat(): void {}

  questions(task: Task, open: readonly TaskQuestion[]): void {
    for (const question of open) void this.#ask(task, question);
  }

  /** What the app does with it is its own business, and nothing of it may end the run. */
  #tell(progress: TaskProgress): void {
    try {
      this.#options.onProgress?.(progress);
    } catch (error) {
      this.#core.log.warn("`onProgress` threw", { error });
    }
  }

  #toRequest(input: unknown): CallRequest {
    return {
      entry: this.#entry,
      input,
      caller: this.#caller,
      origin: this.#origin,
      client,
      limit,
      progressToken: undefined,
      isNew: false,
      idempotencyKey: undefined,
      answered: [],
      whenAsked: () => (this.#options.answer === undefined ? "handOut" : "elicit"),
      whyNoAnswer: "nobody is there to answer; give `answer` with the call",
      watcher: this,
      gone: this.#gone,
      isLost: () => false,
      dropped: undefined,
    };
  }

  async #ask(task: Task, question: TaskQuestion): Promise<void> {
    const { key } = question;
    const answerWith = (answer: Answer) => this.#engine?.answer(this.#caller, task.taskId, { [key]: answer });
    try {
      await answerWith((await this.#options.answer?.(question)) ?? { action: "cancel" });
    } catch (error) {
      this.#core.log.warn(`\`answer\` did not answer «${question.message}»: ${messageOf(error)}`);
      await answerWith({ action: "cancel" })?.catch(() => undefined);
    }
  }

  async #conclude(engine: Engine, ending: CallEnding): Promise<Json> {
    // What it leaves on record goes, whether anybody still wants the answer or not.
    if (ending.kind === "ended") ending.finish(true);
    if (ending.kind !== "deferred") this.#gone.throwIfAborted();
    if (ending.kind === "ended") return this.#toResult(ending);
    if (ending.kind === "deferred") return await this.#follow(engine, ending.task, !ending.isJoined);
    throw new CommandError(whereItIs(this.#entry.toolName, ending.kind === "left" ? ending.taskId : undefined));
  }

  #toResult({ outcome, note, taskId }: EndedCall): Json {
    if (outcome.ending === "failed" && outcome.rpc !== undefined)
      throw new ProtocolError(outcome.rpc.code, outcome.rpc.message, outcome.rpc.data);
    const timestamp = toTimestamp(this.#core.clock.now());
    return toCallResult(outcome, this.#entry.command, {
      withLog: false,
      progressToken: undefined,
      taskId,
      note: note === undefined ? undefined : { type: "info", text: note, timestamp },
    });
  }

  /** It has become a task, and is waited for all the same. */
  async #follow(engine: Engine, begun: Task, isOwn: boolean): Promise<Json> {
    const reader = new ProgressReader(begun);
    const onTask = (task: Task) => {
      const update = reader.next(task);
      if (update !== undefined) this.progress(update);
    };
    const signal = AbortSignal.any([this.#gone, engine.leaving]);
    try {
      const task = await engine.wait(this.#caller, begun.taskId, { signal, onTask });
      if (!isTerminal(task)) throw new RequestError("params", "The task has no end.");
      return resultOrError(task, (tool) => this.#core.catalog.get(tool)?.command, false);
    } catch (error) {
      if (this.#gone.aborted && isOwn) await engine.cancel(this.#caller, begun.taskId);
      if (!this.#gone.aborted && engine.leaving.aborted)
        throw new CommandError(whereItIs(this.#entry.toolName, begun.taskId));
      throw error;
    }
  }
}

function whereItIs(toolName: string, taskId: string | undefined): string {
  return taskId === undefined
    ? `The server was closed, and ${toolName} could not be made a task; check what it has done before you call again.`
    : `The server was closed. ${toolName} is the task ${taskId}; where tasks are kept in a file, the next server on it has it.`;
}
