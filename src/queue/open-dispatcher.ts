import { createHash } from "node:crypto";
import type { Clock } from "../clock.ts";
import { UsageError } from "../errors.ts";
import { createId } from "../ids.ts";
import type { Logger } from "../log.ts";
import { type Dispatcher, StoreDispatcher } from "../task/dispatcher.ts";
import type { SharedState } from "../task/shared-state.ts";
import type { TaskStore } from "../task/store.ts";

/** Who hands out the tasks of a store, by its address; `byStore` stands for the store itself. */
export const byStore = "store";

/** What the nodes of one store have in common, and no other store, names their queue. */
type QueuedStore = TaskStore & { readonly shared: Pick<SharedState, "secret"> };

export interface QueueTerms {
  /** `store`, or the address of a queue. */
  readonly queue: string;
  readonly project: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Throws, in one sentence, where there cannot be such a queue. Nothing is reached before there is something to do. */
export async function openDispatcher(store: QueuedStore, terms: QueueTerms): Promise<Dispatcher> {
  const { queue, project, clock, log } = terms;
  if (queue === byStore) return new StoreDispatcher(store);
  const [{ BullDispatcher }, { loadBullmq, openBullQueue }] = await Promise.all([
    import("./bull-dispatcher.ts"),
    import("./bull-queue.ts"),
  ]);
  const bullmq = await loadBullmq(queue);
  const openQueue = async (onTrouble: (error: Error) => void) => {
    const name = queueName(project, await store.shared.secret());
    return await openBullQueue(bullmq, { url: queue, name, clock, onTrouble });
  };
  return new BullDispatcher({ store, openQueue, node: createId().slice(0, 12), clock, log });
}

/** Two databases may have a project, and a Redis, in common: a ticket of one is of no use to nodes of the other. */
export function queueName(project: string, secret: string): string {
  const mark = createHash("sha256").update(`queue ${secret}`).digest("hex").slice(0, 12);
  return `meanwhile-${project}-${mark}`;
}

export const isQueue = (value: string) => value === byStore || /^(postgres(ql)?|rediss?):\/\//i.test(value);

/** What a setting names as the queue. Throws where that is none. */
export function checkQueue(value: string, from: string): string {
  if (isQueue(value)) return value;
  throw new UsageError(
    `${from} must be an address that begins with postgres:// or redis://, or the word ${byStore}: then the store hands out its tasks itself.`,
  );
}
