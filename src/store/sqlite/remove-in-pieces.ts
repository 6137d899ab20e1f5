import type { Clock } from "../../clock.ts";
import { failpoint } from "../../failpoint.ts";
import { PieceSize } from "./piece-size.ts";
import type { SqlValues } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

/** The most that goes while others wait for the lock, by number and by size; at least one goes. */
const mostTasks = 500;
const mostBytes = 4 * 1024 * 1024;

interface Removal {
  readonly file: TaskFile;
  readonly clock: Clock;
  readonly name: "sweep" | "prune";
  readonly values: SqlValues;
}

/** However many tasks there are to remove, and however large, nobody waits long for their turn; their ids. */
export async function removeInPieces({ file, clock, name, values }: Removal): Promise<string[]> {
  const removed: string[] = [];
  const size = new PieceSize(clock, mostTasks);
  for (;;) {
    const remove = (count: number) => file.ids(name, { ...values, count, bytes: mostBytes });
    const piece = await file.quickly(() => size.do(remove));
    if (piece.length === 0) return removed;
    removed.push(...piece);
    failpoint("after-piece");
    await size.rest();
  }
}
