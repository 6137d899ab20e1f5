import type { TaskFile } from "./task-file.ts";

/** Pages that are moved while others wait for the lock. */
const movedAtOnce = 250;
/** Pages that stay free, and a part of all of them: what comes next needs them again. */
const keptFree = { pages: 256, part: 1 / 16 };

/**
 * Gives the disk back what removed tasks have left, a few pages at a time. Where a file was made before it could do
 * that, its free pages are used again and it stays as long as it was.
 */
export async function giveBackPages(file: TaskFile): Promise<void> {
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    const { free, pages } = await file.read(() => file.readFree());
    const surplus = free - Math.max(keptFree.pages, Math.ceil(pages * keptFree.part));
    if (surplus <= 0 || free >= before) return;
    before = free;
    await file.quickly(() => file.dropPages(Math.min(surplus, movedAtOnce)));
  }
}
