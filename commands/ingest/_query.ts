/** More words than these say nothing more. */
const maxTerms = 16;
/** Shorter beginnings would mean half of all words. */
const minBeginning = 3;

/** A word, a phrase, or the beginning of words. */
export interface Term {
  readonly words: string;
  readonly isPrefix: boolean;
}

/**
 * What to look for: words, "phrases in quotes" and beginnings*. Everything else a query may hold is no syntax, only
 * text.
 */
export function readTerms(query: string): Term[] {
  const terms: Term[] = [];
  for (const [, phrase, word = ""] of query.replaceAll("\0", " ").matchAll(/"([^"]*)"?|([^\s"]+)/g)) {
    const words = phrase ?? word;
    // Only letters and digits are indexed: a term without any would find nothing, and with it nothing else would be
    // found.
    if (!/[\p{L}\p{N}]/u.test(words)) continue;
    const beginning = phrase === undefined ? /([\p{L}\p{N}]+)\*$/u.exec(words)?.[1] : undefined;
    terms.push({ words, isPrefix: (beginning?.length ?? 0) >= minBeginning });
  }
  return terms.slice(0, maxTerms);
}

/** As FTS5 reads it. Every term is quoted, so that none of its operators can come from a query. */
export function toMatch(terms: readonly Term[], operator: "AND" | "OR"): string {
  return terms
    .map(({ words, isPrefix }) => `"${words.replaceAll('"', '""')}"${isPrefix ? "*" : ""}`)
    .join(` ${operator} `);
}

/** How many words there are to rank by, those of phrases included. */
export function countWords(terms: readonly Term[]): number {
  return terms.reduce((sum, { words }) => sum + (words.match(/[\p{L}\p{N}]+/gu)?.length ?? 0), 0);
}
