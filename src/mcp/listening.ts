import { internalErrorCode, ProtocolError } from "../errors.ts";
import { metaKeys } from "../wire/envelope.ts";
import { fieldsOf, type Json } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { objectParam } from "./params.ts";
import type { Request } from "./request.ts";
import { toRpcError } from "./router.ts";
import { type TaskListen, type TaskSubscriptions, toTaskListen } from "./subscriptions.ts";
import { missingTasks, takesTasks } from "./tasks-2026.ts";

type Id = string | number;

/** Of one connection. */
const maxListens = 1_024;
const maxTaskIds = 10_000;

const lists = { tools: "toolsListChanged", prompts: "promptsListChanged" } as const;
export type ListName = keyof typeof lists;

interface Listen {
  readonly honoured: Json;
  readonly taskCount: number;
}

export interface ListeningOptions {
  readonly tasks: TaskSubscriptions;
  /** The lists that can change here. */
  readonly lists: readonly ListName[];
  readonly send: (message: Message) => void;
}

/** What one connection of 2026-07-28 listens to. A listening stands until the client cancels it, or is gone. */
export class Listening {
  readonly #options: ListeningOptions;
  readonly #open = new Map<Id, Listen>();

  constructor(options: ListeningOptions) {
    this.#options = options;
  }

  async begin(id: Id, params: Json, request: Request): Promise<void> {
    try {
      const { honoured, listen, taskIds } = await this.#honour(id, params, request);
      if (request.signal.aborted) return;
      request.signal.addEventListener("abort", () => this.#open.delete(id), { once: true });
      this.#open.set(id, { honoured, taskCount: taskIds.length });
      this.#tell(id, "notifications/subscriptions/acknowledged", { notifications: honoured });
      if (listen !== undefined) this.#options.tasks.follow(listen, request.caller, taskIds, (news) => this.#options.send(news as Message), request.signal);
    } catch (error) {
      if (!request.signal.aborted) this.#options.send({ id, error: toRpcError(error) });
    }
  }

  listChanged(list: ListName): void {
    for (const [id, { honoured }] of this.#open) if (honoured[lists[list]] === true) this.#tell(id, `notifications/${list}/list_changed`, {});
  }

  async #honour(id: Id, params: Json, request: Request): Promise<{ honoured: Json; listen: TaskListen | undefined; taskIds: readonly string[] }> {
    const wanted = objectParam(params, "notifications");
    if (this.#open.size >= maxListens) throw new ProtocolError(internalErrorCode, `There are ${maxListens} listenings open already; end one first.`);
    const known = this.#options.lists.map((list) => lists[list]).filter((name) => wanted[name] === true);
    const honoured = Object.fromEntries(known.map((name) => [name, true]));
    const listen = toTaskListen({ method: "subscriptions/listen", id, params });
    if (listen === undefined) return { honoured, listen, taskIds: [] };
    if (!takesTasks(request.client.capabilities)) throw missingTasks();
    const held = [...this.#open.values()].reduce((sum, { taskCount }) => sum + taskCount, 0);
    if (held + listen.taskIds.length > maxTaskIds)
      throw new ProtocolError(internalErrorCode, `There are ${held} tasks that are listened to here, of ${maxTaskIds} at a time; listen to fewer.`);
    const taskIds = await this.#options.tasks.honour(listen, request.caller);
    return { honoured: { ...honoured, taskIds }, listen, taskIds };
  }

  #tell(id: Id, method: string, params: Json): void {
    this.#options.send({ method, params: { ...params, _meta: { ...fieldsOf(params._meta), [metaKeys.subscription]: id } } });
  }
}
