import { randomInt } from "node:crypto";
import { setImmediate as giveWay } from "node:timers/promises";
import type Database from "better-sqlite3";
import { ensureSchema, maxRowsAtOnce, maxWriteMs, withPack, writeAtOnce } from "../_pack/database.ts";
import type { Chunk } from "./_chunks.ts";

/**
 * What can be searched: files, cut into chunks whose texts are in a full-text table under the chunk's number. A file's
 * stamp is written last, so that one that was cut short is read again. A chunk that goes takes its text along.
 */
const schema = [
  `create table ingest_files (
    id integer primary key,
    path blob not null unique,
    shown text not null,
    stamp text not null,
    cut text not null,
    source text not null,
    engine text not null,
    title text not null,
    bytes integer not null,
    chunks integer not null,
    ingested_at integer not null
  );
  create table ingest_chunks (
    id integer primary key,
    file integer not null references ingest_files (id) on delete cascade,
    ordinal integer not null,
    line integer not null,
    run integer not null
  );
  create index ingest_chunks_by_file on ingest_chunks (file, run);
  create virtual table ingest_texts using fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
  create trigger ingest_chunks_gone after delete on ingest_chunks begin
    delete from ingest_texts where rowid = old.id;
  end;
  create table ingest_sources (
    id text primary key,
    assistant text not null,
    kind text not null,
    format text not null,
    path blob not null,
    pattern text not null,
    files integer not null,
    bytes integer not null,
    newest_at integer,
    found_at integer not null
  );`,
  `alter table ingest_sources add column provider text not null default '';
  alter table ingest_sources add column project text not null default '';`,
];

/** Opens what can be searched, and closes it whatever happens. */
export function withIngested<T>(home: string, act: (db: Database.Database) => T | Promise<T>): Promise<T> {
  return withPack(home, (db) => {
    ensureSchema(db, "ingest", schema);
    return act(db);
  });
}

/** A file that is new or has changed, read and cut. */
export interface IngestFile {
  readonly path: Buffer;
  readonly shown: string;
  readonly stamp: string;
  /** How it was cut and read: another way makes it anew. */
  readonly cut: string;
  /** What `discover` calls the place it comes from; empty for a path that was given. */
  readonly source: string;
  readonly engine: string;
  readonly title: string;
  readonly bytes: number;
  readonly chunks: readonly Chunk[];
}

export interface KnownFile {
  readonly id: number;
  readonly stamp: string;
  readonly cut: string;
}

export interface IngestWriter {
  find(path: Buffer): KnownFile | undefined;
  /** Stores files in short transactions, with a turn for everybody else between them; told of each when it is safe. */
  store(files: readonly IngestFile[], onStored: (id: number, file: IngestFile) => void): Promise<void>;
  remove(ids: readonly number[]): void;
}

function prepareStatements(db: Database.Database) {
  return {
    find: db.prepare("select id, stamp, cut from ingest_files where path = ?"),
    begin: db
      .prepare(
        `insert into ingest_files (path, shown, stamp, cut, source, engine, title, bytes, chunks, ingested_at) values (?, ?, '', ?, ?, ?, ?, ?, 0, ?)
        on conflict (path) do update set stamp = '', cut = excluded.cut, source = excluded.source, engine = excluded.engine, title = excluded.title,
          bytes = excluded.bytes, ingested_at = excluded.ingested_at returning id`,
      )
      .pluck(),
    addChunk: db.prepare("insert into ingest_chunks (file, ordinal, line, run) values (?, ?, ?, ?)"),
    addText: db.prepare("insert into ingest_texts (rowid, text) values (?, ?)"),
    oldChunks: db.prepare("select id from ingest_chunks where file = ? and run <> ?").pluck(),
    removeChunk: db.prepare("delete from ingest_chunks where id = ?"),
    finish: db.prepare("update ingest_files set stamp = ?, chunks = ? where id = ?"),
    removeFile: db.prepare("delete from ingest_files where id = ?"),
  };
}

export function createWriter(db: Database.Database): IngestWriter {
  const statements = prepareStatements(db);
  /** Chunks of another run are older ones, or those of a run that was killed. */
  const run = randomInt(2 ** 47);

  function* allRows(files: readonly IngestFile[]): Generator<{ id: number; file: IngestFile } | undefined> {
    for (const file of files) yield { id: yield* writeRows(statements, run, file), file };
  }

  return {
    find: (path) => statements.find.get(path) as KnownFile | undefined,
    async store(files, onStored) {
      const rows = allRows(files);
      for (let isDone = false; !isDone; ) {
        const stored: { id: number; file: IngestFile }[] = [];
        writeAtOnce(db, () => {
          const end = performance.now() + maxWriteMs / 2;
          for (
            let written = 0;
            written < maxRowsAtOnce && !isDone && (written === 0 || performance.now() < end);
            written++
          ) {
            const next = rows.next();
            isDone = next.done === true;
            if (next.value !== undefined) stored.push(next.value);
          }
        });
        for (const { id, file } of stored) onStored(id, file);
        await giveWay();
      }
    },
    remove(ids) {
      const { oldChunks, removeChunk, removeFile } = statements;
      for (const id of ids) {
        const chunks = oldChunks.all(id, -1);
        for (let from = 0; from < chunks.length; from += maxRowsAtOnce)
          writeAtOnce(db, () => chunks.slice(from, from + maxRowsAtOnce).map((chunk) => removeChunk.run(chunk)));
        removeFile.run(id);
      }
    },
  };
}

/** Writes a file row by row, so that no transaction has to take all of a large one. */
function* writeRows(
  { begin, addText, addChunk, oldChunks, removeChunk, finish }: ReturnType<typeof prepareStatements>,
  run: number,
  { path, shown, cut, source, engine, title, bytes, chunks, stamp }: IngestFile,
): Generator<undefined, number> {
  const id = begin.get(path, shown, cut, source, engine, title, bytes, Date.now()) as number;
  for (const [ordinal, { text, line }] of chunks.entries()) {
    addText.run(addChunk.run(id, ordinal, line, run).lastInsertRowid, text);
    yield;
  }
  for (const old of oldChunks.all(id, run)) {
    removeChunk.run(old);
    yield;
  }
  finish.run(stamp, chunks.length, id);
  return id;
}
