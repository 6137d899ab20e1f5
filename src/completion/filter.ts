/**
 * What fits what was typed. Three ways, in this order; a later one is tried only when the ones before it found nothing:
 *   1. begins with it, as typed;
 *   2. begins with it, upper or lower case;
 *   3. has its letters in this order, upper or lower case: nearest to the front first, then the closest together.
 * Nothing typed: everything fits. The first two keep the order of the list.
 */

/** The values that fit what was typed so far, each once. */
export function filterCompletions(values: readonly string[], partial: string): string[] {
  return filterBy([...new Set(values)], partial, (value) => value);
}

/** The same for anything that has a text. */
export function filterBy<T>(items: readonly T[], partial: string, textOf: (item: T) => string): T[] {
  if (partial === "") return [...items];
  const exact = items.filter((item) => textOf(item).startsWith(partial));
  if (exact.length > 0) return exact;
  const typed = partial.toLowerCase();
  const anyCase = items.filter((item) => textOf(item).toLowerCase().startsWith(typed));
  return anyCase.length > 0 ? anyCase : filterByLetters(items, typed, textOf);
}

function filterByLetters<T>(items: readonly T[], typed: string, textOf: (item: T) => string): T[] {
  const found: { item: T; start: number; span: number }[] = [];
  for (const item of items) {
    const place = findLetters(textOf(item).toLowerCase(), typed);
    if (place !== undefined) found.push({ item, ...place });
  }
  // The sort is stable, so that equals stay in the order of the list.
  return found.sort((a, b) => a.start - b.start || a.span - b.span).map(({ item }) => item);
}

function findLetters(text: string, typed: string): { start: number; span: number } | undefined {
  let start = -1;
  let from = 0;
  for (const letter of typed) {
    const at = text.indexOf(letter, from);
    if (at === -1) return undefined;
    if (start === -1) start = at;
    from = at + letter.length;
  }
  return { start, span: from - start };
}
