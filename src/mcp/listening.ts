import { ProtocolError, RpcCode } from "../errors.ts";
import { fieldsOf, type Json } from "../wire/json.ts";
import { metaKeys } from "../wire/request-envelope.ts";
import { missingTasks, takesTasks } from "./generation/tasks-2026.ts";
import { objectParam } from "./params.ts";
import type { ClientConnection, ClientRequest, Result } from "./request.ts";
import type { TaskSubscriptions } from "./subscriptions.ts";

/** Of one connection. Over HTTP a listening has one of its own, and its door counts them for each caller. */
const maxListens = 1_024;
const maxTaskIds = 10_000;

const lists = { tools: "toolsListChanged", prompts: "promptsListChanged" } as const;
export type ListName = keyof typeof lists;

interface Listen {
  readonly honoured: Json;
  readonly end: () => void;
}

interface Held {
  listens: number;
  taskIds: number;
}

/**
 * What clients of 2026-07-28 listen to. A listening stands until its client cancels it, or is gone; its answer is the
 * last word.
 */
export class Listening {
  readonly #tasks: TaskSubscriptions;
  /** The lists that can change here. */
  readonly #lists: readonly ListName[];
  readonly #open = new Map<ClientRequest, Listen>();
  readonly #held = new WeakMap<ClientConnection, Held>();
  /** How often the lists have changed. */
  #changes = 0;

  constructor(tasks: TaskSubscriptions, names: readonly ListName[]) {
    this.#tasks = tasks;
    this.#lists = names;
  }

  async answer(params: Json, request: ClientRequest): Promise<Result> {
    const wanted = objectParam(params, "notifications");
    const taskIds = Array.isArray(wanted.taskIds) ? this.#tasks.readIds(wanted.taskIds) : undefined;
    const release = this.#hold(request, taskIds?.length ?? 0);
    try {
      return await this.#listen(wanted, taskIds, request);
    } finally {
      this.#open.delete(request);
      release();
    }
  }

  listsChanged(): void {
    this.#changes += 1;
    for (const [request, { honoured }] of this.#open)
      for (const list of this.#lists)
        if (honoured[lists[list]] === true) tell(request, `notifications/${list}/list_changed`, {});
  }

  /** The HTTP door is closed: whoever listens there is told that it is over. */
  endHttp(): void {
    for (const [{ door }, { end }] of this.#open) if (door === "http") end();
  }

  async #listen(wanted: Json, taskIds: readonly string[] | undefined, request: ClientRequest): Promise<Result> {
    if (taskIds !== undefined && !takesTasks(request.client.capabilities)) throw missingTasks();
    const own = taskIds === undefined ? undefined : await this.#tasks.honour(taskIds, request.caller);
    const known = this.#lists.map((list) => lists[list]).filter((name) => wanted[name] === true);
    const over = new AbortController();
    const before = this.#changes;
    const others = await (await request.guest())?.listen(
      wanted,
      (method, news) => tell(request, method, news),
      over.signal,
    );
    const honoured = {
      ...others,
      ...Object.fromEntries(known.map((name) => [name, true])),
      ...(own !== undefined && { taskIds: own }),
    };
    const ended = new Promise((resolve) => over.signal.addEventListener("abort", resolve, { once: true }));
    const end = () => over.abort();
    if (request.signal.aborted) end();
    request.signal.addEventListener("abort", end, { once: true });
    this.#open.set(request, { honoured, end });
    tell(request, "notifications/subscriptions/acknowledged", { notifications: honoured });
    // What this request itself has brought to light is news to who has listed before it.
    if (this.#changes !== before)
      for (const list of this.#lists)
        if (known.includes(lists[list])) tell(request, `notifications/${list}/list_changed`, {});
    if (own !== undefined)
      this.#tasks.follow(request, own, (news) => tell(request, "notifications/tasks", news), over.signal);
    // A stream on which nothing can come is not kept open.
    if (request.door === "http" && Object.keys(honoured).length === 0) end();
    await ended;
    return { _meta: { [metaKeys.subscription]: request.id } };
  }

  #hold({ connection }: ClientRequest, taskIds: number): () => void {
    const held = this.#held.get(connection) ?? { listens: 0, taskIds: 0 };
    this.#held.set(connection, held);
    if (held.listens >= maxListens)
      throw new ProtocolError(RpcCode.Internal, `There are ${maxListens} listenings open already; end one first.`);
    if (held.taskIds + taskIds > maxTaskIds)
      throw new ProtocolError(
        RpcCode.Internal,
        `There are ${held.taskIds} tasks that are listened to here, of ${maxTaskIds} at a time; listen to fewer.`,
      );
    held.listens += 1;
    held.taskIds += taskIds;
    return () => {
      held.listens -= 1;
      held.taskIds -= taskIds;
    };
  }
}

function tell(request: ClientRequest, method: string, params: Json): void {
  request.notify(method, { ...params, _meta: { ...fieldsOf(params._meta), [metaKeys.subscription]: request.id } });
}
