import type { CreatedTask, CreateRequest, Engine } from "./engine.ts";
import type { Worker } from "./worker.ts";

/** Makes a task: in one write with its claim where this process has a place for it, else for whoever has one. */
export async function createHere(
  { engine, worker }: { readonly engine: Engine; readonly worker: Worker },
  creation: CreateRequest,
  isEndless: boolean,
): Promise<CreatedTask> {
  const place = worker.keepPlace({ caller: creation.caller, isEndless });
  try {
    const created = await engine.create(creation, place?.claim);
    if (!created.isJoined) place?.begin(created.task);
    worker.start();
    return created;
  } finally {
    place?.giveBack();
  }
}
