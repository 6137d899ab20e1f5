import type Database from "better-sqlite3";
import { countWords, type Term, toMatch } from "./_query.ts";

export interface Hit {
  readonly path: string;
  readonly title: string;
  readonly source: string;
  readonly engine: string;
  readonly line: number;
  readonly chunk: number;
  readonly score: number;
  readonly snippet: string;
}

export interface Found {
  /** Whether the chunks hold all terms, or only some. */
  readonly matched: "all" | "any";
  readonly hits: readonly Hit[];
  readonly hasMore: boolean;
  /** Terms that are in so many chunks that they say nothing beside the others. */
  readonly ignored: readonly string[];
  /** False when so many chunks matched that only the newest of them were ranked. */
  readonly isComplete: boolean;
}

/**
 * Ranking costs about a microsecond for each chunk and word, and a word's weight costs a look at all chunks that hold
 * it. A search takes so many of them and no more: what is common is left out, and of too many chunks only the newest
 * are ranked.
 */
const maxRankings = 6_000;
const minRanked = 1_000;
/** A word that is in so many chunks is a common one. */
const commonCount = 20_000;
/** Of terms that are all common, so many are looked for. */
const maxCommon = 2;

interface Counted {
  readonly term: Term;
  /** In how many chunks it is; counted up to `commonCount`. */
  readonly count: number;
}

/** Searches for all terms, or else for any; the best first, whatever the terms, in bounded time. */
export function search(
  db: Database.Database,
  terms: readonly Term[],
  page: { limit: number; offset: number; source: string },
): Found {
  const counted = terms.map((term) => ({
    term,
    count: terms.length === 1 ? 0 : countUpTo(db, toMatch([term], "OR"), commonCount),
  }));
  const rare = counted.filter(({ count }) => count < commonCount);
  const common = counted.filter(({ count }) => count === commonCount).slice(0, maxCommon);
  // Words that are nowhere tell nothing either, but then not all words are found.
  const isRareEnough = common.length === 0 || rare.some(({ count }) => count > 0);
  const telling = isRareEnough ? rare : common;
  const mayBeAll = isRareEnough || rare.length === 0;
  const isAll = mayBeAll && (telling.length === 1 || countUpTo(db, toMatch(telling.map(toTerm), "AND"), 1) === 1);
  const used = (isAll ? telling : rarest(telling)).map(toTerm);
  const match = toMatch(used, isAll ? "AND" : "OR");
  // Where any word will do, most chunks hold one; where all must be there, each is ranked by all.
  const maxRanked = isAll ? Math.max(minRanked, Math.floor(maxRankings / countWords(used))) : maxRankings;
  const ranked = rank(db, { match, maxRanked, ...page, limit: page.limit + 1 });
  return {
    matched: isAll ? "all" : "any",
    hits: show(db, match, ranked.slice(0, page.limit)),
    hasMore: ranked.length > page.limit,
    ignored: counted.filter(({ term, count }) => count > 0 && !used.includes(term)).map(({ term }) => term.words),
    isComplete: (ranked[0]?.matches ?? 0) <= maxRanked,
  };
}

const toTerm = ({ term }: Counted) => term;

function countUpTo(db: Database.Database, match: string, limit: number): number {
  return db
    .prepare("select count(*) from (select 1 from ingest_texts where ingest_texts match ? limit ?)")
    .pluck()
    .get(match, limit) as number;
}

/** Where any term will do: those that are there at all, the rarest first, as many as can be ranked. */
function rarest(counted: readonly Counted[]): Counted[] {
  const chosen: Counted[] = [];
  let sum = 0;
  for (const term of counted.filter(({ count }) => count > 0).sort((a, b) => a.count - b.count)) {
    sum += term.count;
    if (chosen.length === 0 || sum <= maxRankings) chosen.push(term);
  }
  return chosen.length === 0 ? counted.slice(0, 1) : chosen;
}

interface Ranked {
  readonly id: number;
  readonly rank: number;
  /** How many chunks were found in all; one more than are ranked stands for any number. */
  readonly matches: number;
}

interface RankWish {
  readonly match: string;
  readonly maxRanked: number;
  readonly limit: number;
  readonly offset: number;
  readonly source: string;
}

/** The best of the newest chunks that match. */
function rank(db: Database.Database, { match, maxRanked, limit, offset, source }: RankWish): Ranked[] {
  const filter =
    source === ""
      ? ""
      : "and (select ingest_files.source from ingest_chunks join ingest_files on ingest_files.id = file where ingest_chunks.id = ingest_texts.rowid) = @source";
  const newest = `select rowid as id, rank from ingest_texts where ingest_texts match @match ${filter} order by rowid desc limit @maxRanked + 1`;
  const best = db.prepare(
    `select id, rank, count(*) over () as matches from (${newest}) order by rank, id limit @limit offset @offset`,
  );
  return best.all({ match, maxRanked, limit, offset, source }) as Ranked[];
}

/** What to show of them. One pass over what matches: a search for each would look up every term again. */
function show(db: Database.Database, match: string, ranked: readonly Ranked[]): Hit[] {
  if (ranked.length === 0) return [];
  const ids = ranked.map(({ id }) => id);
  const rows = db.prepare(
    `select ingest_chunks.id, shown as path, title, source, engine, line, ordinal as chunk, snippet(ingest_texts, 0, '«', '»', '…', 24) as snippet
    from ingest_texts join ingest_chunks on ingest_chunks.id = ingest_texts.rowid join ingest_files on ingest_files.id = file
    where ingest_texts match ? and ingest_texts.rowid between ? and ? and +ingest_texts.rowid in (${ids.map(() => "?").join(", ")})`,
  );
  const found = rows.all(match, Math.min(...ids), Math.max(...ids), ...ids) as (Omit<Hit, "score"> & { id: number })[];
  const byId = new Map(found.map(({ id, ...hit }) => [id, hit]));
  return ranked.flatMap(({ id, rank: worth }) => {
    const hit = byId.get(id);
    return hit === undefined
      ? []
      : [{ ...hit, snippet: hit.snippet.replaceAll(/\s+/g, " "), score: Number((-worth).toPrecision(6)) }];
  });
}
