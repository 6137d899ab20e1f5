import { existsSync } from "node:fs";
import path from "node:path";
import Database from "better-sqlite3";
import { readLines } from "../../chaos/check.ts";
import type { RunLine } from "../../chaos/commands.ts";
import type { Place } from "./places.ts";

/** What a client was told, and what may have become of it. */
export interface Promised {
  readonly key: string;
  readonly tool: "soak_safe" | "soak_unsafe" | "soak_asks" | "soak_large";
  readonly place: Place;
  /** Somebody has taken it back, or went away in a manner that does. */
  isCancelled: boolean;
  /** Its question was declined. */
  isDeclined: boolean;
}

/** What was asked, what was answered, and what was promised, in all that clients did. */
export class Ledger {
  readonly promised = new Map<string, Promised>();
  readonly counts = new Map<string, number>();
  readonly unanswered: string[] = [];
  readonly wrong: string[] = [];

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** Promised to a client, and not in the store with the ending that it may have. */
  lost(): string[] {
    const places = new Set([...this.promised.values()].map(({ place }) => place));
    return [...places].flatMap((place) => this.#lostIn(place));
  }

  #lostIn(place: Place): string[] {
    const db = new Database(path.join(place.home, "tasks.db"), { readonly: true, timeout: 10_000 });
    const find = db.prepare("select status, outcome from tasks left join outcomes using (number) where task_id = ?");
    const lost: string[] = [];
    for (const [taskId, promised] of this.promised) {
      if (promised.place !== place) continue;
      const row = find.get(taskId) as { status: string; outcome: string | null } | undefined;
      const why = whyWrong(promised, row);
      if (why !== undefined) lost.push(`${place.name}: ${promised.tool} ${promised.key} (${taskId}) ${why}`);
    }
    db.close();
    return lost;
  }

  /** Commands that must not run twice, and did. */
  static double(places: readonly Place[]): string[] {
    return places.flatMap((place) => {
      const file = path.join(place.home, "runs.jsonl");
      const lines = existsSync(file) ? readLines<RunLine>(file) : [];
      const unsafe = Map.groupBy(
        lines.filter(({ key }) => key.startsWith("unsafe")),
        ({ key }) => key,
      );
      return [...unsafe]
        .filter(([, runs]) => runs.length > 1)
        .map(([key, runs]) => `${place.name}: ${key} ran ${runs.length} times`);
    });
  }
}

function whyWrong(promised: Promised, row: { status: string; outcome: string | null } | undefined): string | undefined {
  if (row === undefined) return "is gone";
  if (row.outcome === null) return `has not ended: ${row.status}`;
  const outcome = JSON.parse(row.outcome) as { data?: { key?: string }; message?: string; cause?: string };
  if (row.status === "completed")
    return outcome.data?.key === promised.key ? undefined : `has the result of ${outcome.data?.key}`;
  if (row.status === "cancelled" && promised.isCancelled) return undefined;
  if (row.status === "failed" && (promised.isDeclined || promised.isCancelled)) return undefined;
  // Whoever must not run twice ends with its worker, if that was killed.
  if (
    row.status === "failed" &&
    outcome.cause === "interrupted" &&
    promised.tool === "soak_unsafe" &&
    promised.place.kills > 0
  )
    return undefined;
  return `has ended as ${row.status}: ${outcome.message}`;
}
