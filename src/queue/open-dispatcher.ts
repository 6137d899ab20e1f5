import type { Clock } from "../clock.ts";
import { UsageError } from "../errors.ts";
import { createId } from "../ids.ts";
import type { Logger } from "../log.ts";
import { type Dispatcher, StoreDispatcher } from "../task/dispatcher.ts";
import type { TaskStore } from "../task/store.ts";

/** Who hands out the tasks of a store, by its address; `byStore` stands for the store itself. */
export const byStore = "store";

export interface QueueTerms {
  /** `store`, or the address of a queue. */
  readonly queue: string;
  readonly project: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Throws, in one sentence, where there cannot be such a queue. Nothing is reached before there is something to do. */
export async function openDispatcher(store: TaskStore, terms: QueueTerms): Promise<Dispatcher> {
  const { queue, project, clock, log } = terms;
  if (queue === byStore) return new StoreDispatcher(store);
  const [{ BullDispatcher }, { loadBullmq, openBullQueue }] = await Promise.all([
    import("./bull-dispatcher.ts"),
    import("./bull-queue.ts"),
  ]);
  const bullmq = await loadBullmq(queue);
  const openQueue = (onTrouble: (error: Error) => void) =>
    openBullQueue(bullmq, { url: queue, name: `meanwhile-${project}`, clock, onTrouble });
  return new BullDispatcher({ store, openQueue, node: createId().slice(0, 12), clock, log });
}

export const isQueue = (value: string) => value === byStore || /^(postgres(ql)?|rediss?):\/\//i.test(value);

/** What a setting names as the queue. Throws where that is none. */
export function checkQueue(value: string, from: string): string {
  if (isQueue(value)) return value;
  throw new UsageError(
    `${from} must be an address that begins with postgres:// or redis://, or the word ${byStore}: then the store hands out its tasks itself.`,
  );
}
