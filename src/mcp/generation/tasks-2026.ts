import { callerKey } from "../../command/caller.ts";
import type { Answer } from "../../command/context.ts";
import { isForm, isForPerson } from "../../command/foreign-question.ts";
import { ProtocolError, RequestError, RpcCode } from "../../errors.ts";
import type { Engine } from "../../task/engine.ts";
import { openQuestions } from "../../task/task.ts";
import { fieldsOf } from "../../wire/json.ts";
import { tasksExtension } from "../../wire/revisions.ts";
import { type ResultRoom, readWithRoom } from "../outbound.ts";
import type { PollLimit } from "../poll-limit.ts";
import { canAnswer, toAnswer } from "../questions.ts";
import type { ClientCapabilities, ClientRequest, Handler, Result } from "../request.ts";
import { type TaskTelling, toDetailedTask } from "../task-wire.ts";

/**
 * The tasks extension of 2026-07-28: tasks/get with everything in it, tasks/update, tasks/cancel. The server decides
 * what becomes a task.
 */

export interface Tasks2026Options extends TaskTelling {
  readonly polls: PollLimit;
  readonly results: ResultRoom;
}

/** True when this very request declares the extension; what an earlier one said does not count. */
export function takesTasks({ extensions }: ClientCapabilities): boolean {
  return extensions !== undefined && Object.hasOwn(extensions, tasksExtension);
}

export function missingTasks(): ProtocolError {
  return new ProtocolError(RpcCode.MissingCapability, "Missing required client capabilities: extensions", {
    requiredCapabilities: { extensions: { [tasksExtension]: {} } },
  });
}

/** The extension's methods, for clients of 2026-07-28. */
export function createTasks2026(options: Tasks2026Options): Readonly<Record<string, Handler>> {
  const { openEngine, find, clock, isDebug } = options;
  const methods: Record<string, Handler> = {};
  const handle = (method: string, answer: (params: TaskParams, call: TaskCall) => Promise<Result>) => {
    methods[method] = async (params, request) => {
      const { capabilities } = request.client;
      if (!takesTasks(capabilities)) throw missingTasks();
      return await answer(params, {
        request,
        engine: await openEngine(),
        caller: callerKey(request.caller),
        capabilities,
      });
    };
  };
  handle("tasks/get", async ({ taskId }, { request, engine, caller, capabilities }) => {
    await options.polls.admit(caller, taskId);
    const task = await readWithRoom(request, options.results, () => engine.get(caller, taskId));
    return toDetailedTask(task, find, {
      now: clock.now(),
      canAnswer: (question) => canAnswer(question, capabilities),
      isDebug,
    });
  });
  handle("tasks/update", async ({ taskId }, { request, engine, caller, capabilities }) => {
    const task = await engine.get(caller, taskId);
    const responses = request.inputResponses;
    const answers: Record<string, Answer> = {};
    for (const question of openQuestions(task)) {
      const { key, isConfirmation } = question;
      // What was never shown to a person, no person has confirmed.
      const mayAnswer = canAnswer(question, capabilities) || (isForm(question) && !isConfirmation);
      if (!mayAnswer || !Object.hasOwn(responses, key)) continue;
      const { action } = fieldsOf(responses[key]);
      if (isForPerson(question) && action !== "accept" && action !== "decline" && action !== "cancel")
        throw new RequestError("params", `\`inputResponses.${key}.action\` must be "accept", "decline" or "cancel".`);
      answers[key] = toAnswer(responses[key], question);
    }
    if (Object.keys(answers).length > 0) await engine.answer(caller, task.taskId, answers);
    return {};
  });
  handle("tasks/cancel", async ({ taskId }, { engine, caller }) => {
    const task = await engine.get(caller, taskId);
    await engine.cancel(caller, task.taskId);
    return {};
  });
  return methods;
}

interface TaskParams {
  readonly taskId?: unknown;
}

interface TaskCall {
  readonly request: ClientRequest;
  readonly engine: Engine;
  readonly caller: string;
  readonly capabilities: ClientCapabilities;
}
