import { ProtocolError, requestErrors } from "../../errors.ts";
import type { CallingClient } from "../../task/call-request.ts";
import { isObject } from "../../wire/json.ts";
import { knowsTaskSupport } from "../../wire/revisions.ts";
import { badParams } from "../params.ts";
import type { ToolCall } from "../parts.ts";
import type { ClientIdentity, ClientRequest } from "../request.ts";
import { jobsCapability } from "./jobs.ts";
import { missingTasks, takesTasks } from "./tasks-2026.ts";

/** Whether a client asks for a task, whether it could take one, and whether the tool may be one. */

/** What a client of 2026-07-28 says when it would rather have a task: that revision leaves it to the server. */
const taskHint = "meanwhile/task";

/** `params.task` means something in one generation only. */
export function asksForTask({ task }: ToolCall, { client }: ClientRequest): boolean {
  if (client.isModern || task === undefined || !knowsTaskSupport(client.revision)) return false;
  if (!isObject(task)) throw badParams("`task` must be an object, e.g. { ttl: 60000 }.");
  return true;
}

/** Whether it asked for job notifications. Clients since 2026-07-28 cannot. */
export function takesJobNotifications({
  isModern,
  capabilities,
}: Pick<ClientIdentity, "isModern" | "capabilities">): boolean {
  return !isModern && capabilities.experimental?.[jobsCapability] !== undefined;
}

const known = new Map<number, CallingClient>();

/** What a client that asks for nothing could take: one object for all who could take the same. */
function takesOf({ isModern, capabilities, revision }: ClientIdentity, canFollowUp: boolean): CallingClient {
  const canTakeTask = isModern && takesTasks(capabilities);
  const canTakeUnasked = !isModern && knowsTaskSupport(revision);
  const declaresTasks = canTakeTask || (capabilities as { tasks?: unknown }).tasks !== undefined;
  const takesJobs = takesJobNotifications({ isModern, capabilities });
  const key =
    Number(canTakeTask) +
    2 * Number(canTakeUnasked) +
    4 * Number(declaresTasks) +
    8 * Number(takesJobs) +
    16 * Number(canFollowUp);
  const takes = known.get(key) ?? {
    asked: undefined,
    canTakeTask,
    canTakeUnasked,
    declaresTasks,
    takesJobs,
    canFollowUp,
  };
  known.set(key, takes);
  return takes;
}

/**
 * What this client asked for: with `params.task`, or since 2026-07-28 with a hint, which counts when it can take a
 * task; and what it could take.
 */
export function takesOfCall(call: ToolCall, request: ClientRequest, canFollowUp: boolean): CallingClient {
  const takes = takesOf(request.client, canFollowUp);
  if (asksForTask(call, request)) return { ...takes, asked: { ttlMs: (call.task as { ttl?: unknown }).ttl } };
  const hint = takes.canTakeTask ? request.meta[taskHint] : undefined;
  if (hint === undefined) return takes;
  if (!isObject(hint)) throw badParams(`\`_meta["${taskHint}"]\` must be an object, e.g. { ttlMs: 60000 }.`);
  return { ...takes, asked: { ttlMs: hint.ttlMs } };
}

/** Refuses a tool that is called with, or without, a task against what it declares. */
export function refuseWrongSupport(
  { toolName, taskSupport }: { readonly toolName: string; readonly taskSupport: "optional" | "required" | "forbidden" },
  call: ToolCall,
  request: ClientRequest,
): void {
  const { isModern, capabilities } = request.client;
  if (taskSupport === "required" && isModern && !takesTasks(capabilities)) throw missingTasks();
  if (taskSupport === "required" && !isModern && !asksForTask(call, request))
    throw wrongSupport(`${toolName} runs only as a task; call it with params.task.`);
  if (taskSupport === "forbidden" && asksForTask(call, request))
    throw wrongSupport(`${toolName} cannot run as a task; call it without params.task.`);
}

function wrongSupport(text: string): ProtocolError {
  return new ProtocolError(requestErrors.method.code, text);
}
