/** More changes than these make another name, however long it is. */
const maxChanges = 4;

/** Names that can be looked for by what they are nearly called. */
export class Names<T> {
  readonly #byLength = new Map<number, Map<string, T[]>>();

  add(name: string, value: T): void {
    const folded = fold(name);
    const named = this.#byLength.get(folded.length) ?? new Map<string, T[]>();
    this.#byLength.set(folded.length, named);
    const values = named.get(folded);
    if (values === undefined) named.set(folded, [value]);
    else values.push(value);
  }

  /**
   * All that are equally near, and nearest; none when a quarter of the letters, or more than four, would have to
   * change.
   */
  nearest(name: string): readonly T[] {
    const wanted = fold(name);
    let most = Math.min(maxChanges, wanted.length < 3 ? 0 : Math.max(1, Math.floor(wanted.length / 4)));
    let best: T[] = [];
    for (let length = wanted.length - most; length <= wanted.length + most; length++) {
      for (const [folded, values] of this.#byLength.get(length) ?? []) {
        const changes = countChanges(wanted, folded, most);
        if (changes > most) continue;
        best = changes < most ? [...values] : [...best, ...values];
        most = changes;
      }
    }
    return best;
  }
}

/** Case, and what stands between words, make no other name. */
function fold(name: string): string {
  return name
    .normalize("NFC")
    .toLowerCase()
    .replaceAll(/[\s_-]+/g, " ")
    .trim();
}

/**
 * How many letters have to be changed, added, left out or swapped with their neighbour; more than `most` as soon as
 * that is certain.
 */
export function countChanges(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let at = 1; at <= b.length; at++) {
      const isSame = a[row - 1] === b[at - 1];
      const isSwapped = row > 1 && at > 1 && a[row - 1] === b[at - 2] && a[row - 2] === b[at - 1];
      const plain = Math.min((last[at] ?? 0) + 1, (current[at - 1] ?? 0) + 1, (last[at - 1] ?? 0) + (isSame ? 0 : 1));
      current.push(isSwapped ? Math.min(plain, (before[at - 2] ?? 0) + 1) : plain);
    }
    if (Math.min(...current) > most) return most + 1;
    before = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
