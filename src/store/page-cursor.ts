import { createHash } from "node:crypto";

/**
 * Cursors are opaque to callers; inside they are the number of the last row of a page, marked for the caller it was
 * given to.
 */
export function toCursor(caller: string, row: number): string {
  const mark = createHash("sha256").update(`${row} ${caller}`).digest("base64url").slice(0, 12);
  return Buffer.from(`v1:${row}:${mark}`).toString("base64url");
}

/** The row a cursor stands for, or undefined for something that was never given to this caller. */
export function fromCursor(caller: string, cursor: string): number | undefined {
  const text = Buffer.from(cursor, "base64url").toString("utf8");
  const row = /^v1:(\d{1,15}):/.exec(text)?.[1];
  return row === undefined || toCursor(caller, Number(row)) !== cursor ? undefined : Number(row);
}
