import type { Clock } from "../../clock.ts";
import { failpoint } from "../../failpoint.ts";
import { PieceSize } from "./piece-size.ts";
import type { TaskFile } from "./task-file.ts";

/** The most pages that are moved while others wait for the lock. */
const mostMoved = 500;
/** Pages that stay free, and a part of all of them: what comes next needs them again. */
const keptFree = { pages: 256, part: 1 / 16 };

/**
 * Gives the disk back what removed tasks have left, a few pages at a time. Where a file was made before it could do
 * that, its free pages are used again and it stays as long as it was.
 */
export async function giveBackPages(file: TaskFile, clock: Clock): Promise<void> {
  const size = new PieceSize(clock, mostMoved);
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    const { free, pages } = await file.read(() => file.readFree());
    const surplus = free - Math.max(keptFree.pages, Math.ceil(pages * keptFree.part));
    if (surplus <= 0 || free >= before) return;
    before = free;
    await file.quickly(() => size.do((count) => dropPages(file, Math.min(surplus, count))));
    await size.rest();
  }
}

function dropPages(file: TaskFile, count: number): void {
  file.dropPages(count);
  failpoint("mid-give-back");
}
