import type { CallRequest } from "./call-request.ts";
import type { CreatedTask, CreateRequest, Engine } from "./engine.ts";
import type { Worker } from "./worker.ts";

interface Makers {
  readonly engine: Engine;
  readonly worker: Worker;
}

/** Makes a task: in one write with its claim where this process has a place for it, else for whoever has one. */
export async function createHere(makers: Makers, creation: CreateRequest, isEndless: boolean): Promise<CreatedTask> {
  const { engine, worker } = makers;
  // What can only run here is not left to others.
  if (!worker.takesWork && worker.runs(creation.entry)) return await createOnRecord(makers, creation);
  const place = worker.keepPlace({ caller: creation.caller, isEndless });
  try {
    return await worker.making(async () => {
      const created = await engine.create(creation, place?.claim);
      if (!created.isJoined) place?.begin(created.task);
      worker.start();
      return created;
    });
  } finally {
    place?.giveBack();
  }
}

/** Why a call is a task where nothing is run. */
export const elsewhere = "it is run by another process";

/** Why a call has to be a task from the start, though its client waits for it; undefined where it has not. */
export function whyOnRecord({ entry, idempotencyKey }: CallRequest, worker: Worker): string | undefined {
  if (idempotencyKey !== undefined) return "its idempotency key has to be remembered";
  return worker.runs(entry) ? undefined : elsewhere;
}

/** Makes a task that this process runs at once, whether it has a place or not; where it runs none, for whoever does. */
export async function createOnRecord({ engine, worker }: Makers, creation: CreateRequest): Promise<CreatedTask> {
  const isHere = worker.runs(creation.entry);
  return await worker.making(async () => {
    const created = await engine.create(creation, isHere ? worker.claim : undefined);
    if (isHere && !created.isJoined) worker.runClaimed(created.task);
    return created;
  });
}
