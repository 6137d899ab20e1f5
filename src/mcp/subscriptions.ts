import {
  CLIENT_CAPABILITIES_META_KEY,
  type JSONRPCMessage,
  SUBSCRIPTION_ID_META_KEY,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/server";
import type { Clock } from "../clock.ts";
import { internalErrorCode, RequestError } from "../errors.ts";
import type { Engine } from "../task/engine.ts";
import type { Task } from "../task/task.ts";
import { type Caller, callerKey, localUser } from "./caller.ts";
import { type ClientCapabilities, canElicit } from "./questions.ts";
import { toProtocolError } from "./server.ts";
import { type FindCommand, toDetailedTask } from "./task-wire.ts";
import { missingTasks, takesTasks } from "./tasks-2026.ts";

/**
 * `subscriptions/listen` with `taskIds`, of the tasks extension. The SDK serves listening itself and knows no tasks: the ids are
 * taken out of the request on its way in, put into the acknowledgement on its way out, and what becomes of the tasks is sent beside it.
 */

export interface SubscriptionOptions {
  readonly openEngine: () => Promise<Engine>;
  readonly find: FindCommand;
  readonly clock: Clock;
  readonly isDebug: boolean;
}

type Id = string | number;
type Send = (message: JSONRPCMessage) => void;

/** A request to listen to tasks. */
export interface TaskListen {
  readonly id: Id;
  readonly taskIds: readonly unknown[];
  readonly capabilities: ClientCapabilities;
  /** The request without them. */
  readonly rest: JSONRPCMessage;
}

const maxTaskIds = 1_000;
/** The same of all that one pipe listens to. */
const maxTaskIdsOfPipe = 10_000;

/** Reads a request to listen to tasks; undefined when it is something else. */
export function toTaskListen(message: unknown): TaskListen | undefined {
  const { method, id, params } = (message ?? {}) as { method?: unknown; id?: Id; params?: Record<string, unknown> };
  if (method !== "subscriptions/listen" || id === undefined) return undefined;
  const notifications = params?.notifications as { taskIds?: unknown } | undefined;
  if (!Array.isArray(notifications?.taskIds)) return undefined;
  const { taskIds, ...others } = notifications as { taskIds: unknown[] };
  const meta = params?._meta as Record<string, unknown> | undefined;
  const rest = { ...(message as object), params: { ...params, notifications: others } } as unknown as JSONRPCMessage;
  return { id, taskIds: taskIds.slice(0, maxTaskIds), capabilities: (meta?.[CLIENT_CAPABILITIES_META_KEY] ?? {}) as ClientCapabilities, rest };
}

/** The error for a client that listens to tasks without having declared them. */
export function refuseListen({ capabilities, id }: TaskListen): JSONRPCMessage | undefined {
  if (takesTasks(capabilities)) return undefined;
  const { code, message, data } = missingTasks();
  return { jsonrpc: "2.0", id, error: { code, message, data } };
}

/** Tells clients what becomes of the tasks they listen to: those that are theirs. */
export class TaskSubscriptions {
  readonly #options: SubscriptionOptions;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
  }

  /** The ids that are honoured: others are passed over, whether they never were or belong to somebody else. */
  async honour(listen: TaskListen, caller: Caller): Promise<string[]> {
    const engine = await this.#options.openEngine();
    const ids = [...new Set(listen.taskIds)].filter((id): id is string => typeof id === "string");
    const found = await Promise.all(
      ids.map((id) =>
        engine.get(callerKey(caller), id).then(
          () => true,
          (error: unknown) => {
            if (error instanceof RequestError) return false;
            throw error;
          },
        ),
      ),
    );
    return ids.filter((_, at) => found[at]);
  }

  /** Sends each task as it is now, and again with every change, until the signal says stop. */
  follow(listen: TaskListen, caller: Caller, taskIds: readonly string[], send: Send, signal: AbortSignal): void {
    const { openEngine, find, clock, isDebug } = this.#options;
    const onTask = (task: Task) => {
      const facts = { now: clock.now(), canElicit: canElicit(listen.capabilities), isDebug };
      const { resultType: _type, ...detailed } = toDetailedTask(task, find, facts) as Record<string, unknown>;
      send(toNotification("notifications/tasks", detailed, listen.id));
    };
    for (const taskId of taskIds) {
      void openEngine()
        .then((engine) => engine.wait(callerKey(caller), taskId, { signal, onTask }))
        .catch(() => undefined); // The client stopped listening, or the task was pruned.
    }
  }
}

function toNotification(method: string, params: Record<string, unknown>, id: Id): JSONRPCMessage {
  return { jsonrpc: "2.0", method, params: { ...params, _meta: { [SUBSCRIPTION_ID_META_KEY]: id } } } as JSONRPCMessage;
}

/** Puts the honoured ids into an acknowledgement of the SDK's. */
export function withTaskIds(acknowledgement: JSONRPCMessage, taskIds: readonly string[]): JSONRPCMessage {
  const { params, ...message } = acknowledgement as { params: { notifications?: object } } & JSONRPCMessage;
  return { ...message, params: { ...params, notifications: { ...params.notifications, taskIds } } } as JSONRPCMessage;
}

/** The id of the listening that a message of ours acknowledges. */
export function acknowledgedId(message: JSONRPCMessage): Id | undefined {
  if (!("method" in message) || message.method !== "notifications/subscriptions/acknowledged") return undefined;
  return (message.params?._meta as Record<string, Id> | undefined)?.[SUBSCRIPTION_ID_META_KEY];
}

interface Open {
  readonly listen: TaskListen;
  readonly taskIds: readonly string[];
  readonly stop: AbortController;
}

/** A pipe on which tasks can be listened to. */
export class TaskListenTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #inner: Transport;
  readonly #subscriptions: TaskSubscriptions;
  readonly #open = new Map<Id, Open>();

  constructor(inner: Transport, subscriptions: TaskSubscriptions) {
    this.#inner = inner;
    this.#subscriptions = subscriptions;
  }

  async start(): Promise<void> {
    this.#inner.onclose = () => {
      for (const { stop } of this.#open.values()) stop.abort();
      this.#open.clear();
      this.onclose?.();
    };
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onmessage = (message) => this.#receive(message as JSONRPCMessage);
    await this.#inner.start();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const open = this.#open.get(acknowledgedId(message) ?? "");
    if (open === undefined) return await this.#inner.send(message, options);
    await this.#inner.send(withTaskIds(message, open.taskIds), options);
    const send: Send = (news) => void this.#inner.send(news).catch(() => undefined);
    this.#subscriptions.follow(open.listen, localUser, open.taskIds, send, open.stop.signal);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #receive(message: JSONRPCMessage): void {
    const listen = toTaskListen(message);
    if (listen !== undefined) void this.#begin(listen);
    else {
      this.#forgetCancelled(message);
      this.onmessage?.(message);
    }
  }

  async #begin(listen: TaskListen): Promise<void> {
    const refusal = refuseListen(listen);
    if (refusal !== undefined) return await this.#inner.send(refusal);
    const held = [...this.#open.values()].reduce((sum, { listen: { taskIds } }) => sum + taskIds.length, 0);
    if (held + listen.taskIds.length > maxTaskIdsOfPipe) {
      const message = `There are ${held} tasks that are listened to here, of ${maxTaskIdsOfPipe} at a time; listen to fewer.`;
      return await this.#inner.send({ jsonrpc: "2.0", id: listen.id, error: { code: internalErrorCode, message } });
    }
    const stop = new AbortController();
    // A client that is gone again before the tasks were found must not be followed for ever.
    this.#open.set(listen.id, { listen, taskIds: [], stop });
    const taskIds = await this.#subscriptions.honour(listen, localUser).catch(toProtocolError);
    if (stop.signal.aborted) return;
    if (!Array.isArray(taskIds)) {
      // An acknowledgement without them would look as if they were not there.
      this.#open.delete(listen.id);
      return await this.#inner.send({ jsonrpc: "2.0", id: listen.id, error: { code: taskIds.code, message: taskIds.message } });
    }
    this.#open.set(listen.id, { listen, taskIds, stop });
    this.onmessage?.(listen.rest);
  }

  #forgetCancelled(message: JSONRPCMessage): void {
    if (!("method" in message) || message.method !== "notifications/cancelled") return;
    const id = (message.params as { requestId?: Id } | undefined)?.requestId ?? "";
    this.#open.get(id)?.stop.abort();
    this.#open.delete(id);
  }
}
