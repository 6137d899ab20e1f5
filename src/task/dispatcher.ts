import type { ClaimRequest } from "./store.ts";
import type { Task } from "./task.ts";

/**
 * Which worker runs which task next: the second seam. Embedded, the store answers from its own table;
 * elsewhere a queue may. Correctness never depends on it, because starting an attempt takes a new fence in the store.
 */
export interface Dispatcher {
  /** The next task for this worker, claimed; undefined when there is none right now. */
  next(request: ClaimRequest): Promise<Task | undefined>;
  /** Calls back when there may be work. */
  onWork(listener: () => void): () => void;
}
