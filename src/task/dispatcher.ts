import type { ClaimRequest, TaskStore } from "./store.ts";
import type { Task } from "./task.ts";

/**
 * Which worker runs which task next: the second seam. Embedded, the store answers from its own table; elsewhere a queue
 * wakes those who then ask the store. Correctness never depends on it: what is offered is on record before, starting an
 * attempt takes a new fence in the store, and a worker that hears nothing looks there by itself from time to time. So
 * an offer may be lost, come twice or come late.
 */
export interface Dispatcher {
  /** There is a task to be run, after so many milliseconds: `ticket` names it, and which turn of it. Must not throw. */
  offer(ticket: string, delayMs?: number): void;
  /** The next task for this worker, claimed; undefined when there is none right now. */
  next(request: ClaimRequest): Promise<Task | undefined>;
  /** Calls back when there may be work. */
  onWork(listener: () => void): () => void;
  /** Whether this worker can take more now: a queue wakes those who can. */
  setRoom(hasRoom: boolean): void;
  close(): Promise<void>;
}

/** A task's turn: after every attempt it is another. */
export const ticketOf = ({ taskId, fence }: Pick<Task, "taskId" | "fence">) => `${taskId}-${fence}`;

/** Whose worker was lost, whatever its fence was. */
export const ticketOfLost = (taskId: string) => `${taskId}-lost`;

/** The store's own queue: who makes work is heard by all who listen to the store. */
export class StoreDispatcher implements Dispatcher {
  readonly #store: Pick<TaskStore, "claim" | "onWork">;

  constructor(store: Pick<TaskStore, "claim" | "onWork">) {
    this.#store = store;
  }

  offer(_ticket: string, _delayMs?: number): void {}

  next(request: ClaimRequest): Promise<Task | undefined> {
    return this.#store.claim(request);
  }

  onWork(listener: () => void): () => void {
    return this.#store.onWork(listener);
  }

  setRoom(_hasRoom: boolean): void {}

  async close(): Promise<void> {}
}
