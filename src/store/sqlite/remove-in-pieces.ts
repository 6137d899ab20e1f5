import type { SqlValues } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

/** Rows that go while others wait for the lock: some tens of milliseconds' worth. */
const removedAtOnce = 250;

/** However many tasks there are to remove, nobody waits long for their turn; their ids. */
export async function removeInPieces(file: TaskFile, name: "sweep" | "prune", values: SqlValues): Promise<string[]> {
  const removed: string[] = [];
  for (;;) {
    const piece = await file.quickly(() => file.ids(name, { ...values, limit: removedAtOnce }));
    removed.push(...piece);
    if (piece.length < removedAtOnce) return removed;
  }
}
