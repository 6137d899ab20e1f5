/** Smaller results are bounded by the number of requests, and not worth counting. */
const largeBytes = 64 * 1024;

/** True for a result that has to wait until there is room for it. */
export function isLarge(bytes: number): boolean {
  return bytes > largeBytes;
}

/** The same of a result that is not serialized yet. Counts no further than it has to. */
export function weighsLarge(data: unknown): boolean {
  return isLarge(weigh(data, largeBytes + 1));
}

/** Stands for a result that another process holds, where a result waits for room. */
export class RemoteResult {
  readonly bytes: number;

  constructor(bytes: number) {
    this.bytes = bytes;
  }
}

/**
 * What a value of JSON weighs, near enough, without writing it out: nearly all of a large one is in its texts. Counts
 * no further than to `most`.
 */
export function weigh(value: unknown, most = Number.POSITIVE_INFINITY): number {
  if (value instanceof RemoteResult) return value.bytes;
  let bytes = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && bytes < most) {
    const next = open.pop();
    bytes += 10;
    if (typeof next === "string") bytes += next.length;
    else if (Array.isArray(next)) for (const item of next) open.push(item);
    else if (typeof next === "object" && next !== null)
      for (const [name, item] of Object.entries(next)) {
        bytes += name.length;
        open.push(item);
      }
  }
  return bytes;
}
