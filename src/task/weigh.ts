/**
 * What a value of JSON weighs, near enough, without writing it out: nearly all of a large one is in its texts. Counts
 * no further than to `most`.
 */
export function weigh(value: unknown, most = Number.POSITIVE_INFINITY): number {
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
