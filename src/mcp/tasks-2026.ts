import { MissingRequiredClientCapabilityError, type Result, type ServerContext } from "@modelcontextprotocol/server";
import type { Clock } from "../clock.ts";
import type { Answer } from "../command/context.ts";
import { RequestError } from "../errors.ts";
import type { Engine } from "../task/engine.ts";
import { openQuestions } from "../task/task.ts";
import { tasksExtension } from "../wire/revisions.ts";
import { callerKey, callerOf } from "./caller.ts";
import { readWithRoom } from "./outbound.ts";
import type { PollLimit } from "./poll-limit.ts";
import { type ClientCapabilities, canElicit, capabilitiesOf, toAnswer } from "./questions.ts";
import { anyParams, type CommandServer, toProtocolError } from "./server.ts";
import { type FindCommand, toDetailedTask } from "./task-wire.ts";

/** The tasks extension of 2026-07-28: tasks/get with everything in it, tasks/update, tasks/cancel. The server decides what becomes a task. */

export interface TasksOptions {
  readonly openEngine: () => Promise<Engine>;
  readonly find: FindCommand;
  readonly clock: Clock;
  readonly isDebug: boolean;
  readonly polls: PollLimit;
}

/** True when this very request declares the extension; what an earlier one said does not count. */
export function takesTasks({ extensions }: ClientCapabilities): boolean {
  return extensions !== undefined && Object.hasOwn(extensions, tasksExtension);
}

export function missingTasks(): Error {
  return new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [tasksExtension]: {} } } } as never);
}

/** Registers the extension's methods on a server of 2026-07-28. */
export function serveTasks2026(server: CommandServer, options: TasksOptions): void {
  const { openEngine, find, clock, isDebug } = options;
  const handle = (method: string, answer: (params: TaskParams, call: TaskCall) => Promise<Result>) =>
    server.server.setRequestHandler(method as "tasks/get", { params: anyParams }, async (params, ctx) => {
      const capabilities = capabilitiesOf(ctx, server);
      if (!takesTasks(capabilities)) throw missingTasks();
      try {
        return (await answer(params as TaskParams, { ctx, engine: await openEngine(), caller: callerKey(callerOf(ctx)), capabilities })) as never;
      } catch (error) {
        throw toProtocolError(error);
      }
    });
  handle("tasks/get", async ({ taskId }, { ctx, engine, caller, capabilities }) => {
    await options.polls.admit(caller, taskId);
    const task = await readWithRoom(ctx, server, () => engine.get(caller, taskId));
    return toDetailedTask(task, find, { now: clock.now(), canElicit: canElicit(capabilities), isDebug });
  });
  handle("tasks/update", async ({ taskId }, { ctx, engine, caller, capabilities }) => {
    const task = await engine.get(caller, taskId);
    // The SDK lifts `inputResponses` off every request.
    const responses = (ctx.mcpReq.inputResponses ?? {}) as Record<string, unknown>;
    const answers: Record<string, Answer> = {};
    for (const { key, isConfirmation } of openQuestions(task)) {
      // What was never shown to a person, no person has confirmed.
      const mayAnswer = !isConfirmation || canElicit(capabilities);
      if (!mayAnswer || !Object.hasOwn(responses, key)) continue;
      const { action } = (responses[key] ?? {}) as { action?: unknown };
      if (action !== "accept" && action !== "decline" && action !== "cancel")
        throw new RequestError("params", `\`inputResponses.${key}.action\` must be "accept", "decline" or "cancel".`);
      answers[key] = toAnswer(responses[key]);
    }
    if (Object.keys(answers).length > 0) await engine.answer(caller, task.taskId, answers);
    return {};
  });
  handle("tasks/cancel", async ({ taskId }, { engine, caller }) => {
    const task = await engine.get(caller, taskId);
    await engine.cancel(caller, task.taskId);
    return {};
  });
}

interface TaskParams {
  readonly taskId?: unknown;
}

interface TaskCall {
  readonly ctx: ServerContext;
  readonly engine: Engine;
  readonly caller: string;
  readonly capabilities: ClientCapabilities;
}
