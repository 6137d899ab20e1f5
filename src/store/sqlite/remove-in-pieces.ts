import type { SqlValues } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

/** What goes while others wait for the lock: some tens of milliseconds' worth, by number and by size. */
const removedAtOnce = { count: 250, bytes: 8 * 1024 * 1024 };

/** However many tasks there are to remove, and however large, nobody waits long for their turn; their ids. */
export async function removeInPieces(file: TaskFile, name: "sweep" | "prune", values: SqlValues): Promise<string[]> {
  const removed: string[] = [];
  for (;;) {
    const piece = await file.quickly(() => file.ids(name, { ...values, ...removedAtOnce }));
    removed.push(...piece);
    if (piece.length === 0) return removed;
  }
}
