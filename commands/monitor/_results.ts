import { showName } from "../_pack/paths.ts";
import { Troubles } from "../_pack/trouble.ts";

/** What a sync has done so far. */
export class SyncResults {
  readonly counts = { processed: 0, updated: 0, skipped: 0, removed: 0, bytesRead: 0 };
  readonly troubles = new Troubles();

  update(files: number): void {
    this.counts.updated += files;
    this.counts.processed += files;
  }

  skip(files = 1): void {
    this.counts.skipped += files;
    this.counts.processed += files;
  }

  fail(path: Buffer, reason: string): void {
    this.counts.processed += 1;
    this.troubles.add(showName(path), reason);
  }
}
