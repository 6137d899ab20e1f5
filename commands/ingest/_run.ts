import { lstatSync } from "node:fs";
import path from "node:path";
import type Database from "better-sqlite3";
import { type CommandContext, CommandError } from "meanwhile";
import { z } from "zod";
import { maxRowsAtOnce, whyNotStored } from "../_pack/database.ts";
import { limitsOf } from "../_pack/limits.ts";
import { folderOf, isInside, joinBytes, nameOf, showName } from "../_pack/paths.ts";
import type { Reach } from "../_pack/reach.ts";
import { readDocument } from "../_pack/readers.ts";
import { hiddenField, Troubles, troubleFields } from "../_pack/trouble.ts";
import { createPace, pathOf, type WalkedFile, walkFolders } from "../_pack/walk.ts";
import { engineFor } from "../transform/_engines.ts";
import { folderSkipper, isHidden } from "../transform/_skips.ts";
import { stampOf, withSource } from "../transform/_source.ts";
import type { Chunk, ChunkSizes } from "./_chunks.ts";
import type { IngestHead, IngestHow } from "./_reader.ts";
import { createWriter, type IngestFile } from "./_store.ts";

export interface IngestOptions extends ChunkSizes {
  readonly maxBytes: number;
  readonly maxChunks: number;
  readonly reach: Reach;
}

/** Where to take files from. */
export interface Place {
  readonly path: Buffer;
  readonly kind: "file" | "folder";
  readonly recursive: boolean;
  /** What `discover` calls it; empty for a path that was given. */
  readonly source: string;
  /** How its files are read: by their ending, or as an assistant's history. */
  readonly format: "files" | "conversation";
  /** Only these, by their path below the place. */
  readonly takes: (below: string) => boolean;
}

/** What sources and legacy answer with. */
export const ingestFields = {
  files_seen: z.number().int(),
  files_ingested: z.number().int(),
  files_unchanged: z.number().int(),
  files_removed: z.number().int(),
  chunks_written: z.number().int(),
  files_skipped: z.number().int(),
  skip_reasons: z.record(z.string(), z.number().int()),
  skipped: z.array(z.object({ path: z.string(), reason: z.string() })),
  lines_unreadable: z.number().int(),
  unreadable: z.array(z.string()),
  ...hiddenField,
  ...troubleFields,
  duration_seconds: z.number(),
};

/** Until history knows better: files of about ten chunks each. */
export const filesPerSecond = 200;

/** What is not taken, and why: a choice, not a failure. */
class Skip extends Error {}

const maxSkipsListed = 100;
/** Few enough that they are garbage before they are old: more of them cost memory and gain nothing. */
const maxChunksWaiting = 100;

/** One run over some places. What changed is read, cut and stored; what vanished from them is forgotten. */
export class IngestRun {
  readonly #db: Database.Database;
  readonly #options: IngestOptions;
  readonly #task: Pick<CommandContext, "signal" | "progress" | "home" | "config">;
  readonly #writer;
  readonly #pace;
  readonly #startedAt = performance.now();
  readonly #troubles = new Troubles();
  readonly #seen = new Set<number>();
  readonly #reasons = new Map<string, number>();
  readonly #skipped: { path: string; reason: string }[] = [];
  readonly #badLines: string[] = [];
  #badCount = 0;
  #waiting: IngestFile[] = [];
  #waitingChunks = 0;
  #counts = { seen: 0, ingested: 0, unchanged: 0, removed: 0, chunks: 0, skipped: 0, hidden: 0 };

  constructor(
    db: Database.Database,
    options: IngestOptions,
    task: Pick<CommandContext, "signal" | "progress" | "home" | "config">,
  ) {
    if (options.overlap >= options.size) throw new CommandError("`overlap` must be smaller than `chunk_size`.");
    this.#db = db;
    this.#options = options;
    this.#task = task;
    this.#writer = createWriter(db);
    this.#pace = createPace(task.signal);
  }

  /** Takes a place in; `expected` is how many files all places have, for the progress. */
  async take(place: Place, expected: number): Promise<void> {
    try {
      for await (const file of this.#filesOf(place)) {
        this.#counts.seen++;
        await this.#takeFile(file, place);
        if (!this.#pace.isOver()) continue;
        this.#report(expected);
        await this.#pace.giveWay();
      }
    } finally {
      // Also when the run is stopped: what was read need not be read again.
      await this.#store();
    }
    this.#report(expected);
    await this.#forgetVanished(place.path);
  }

  /** A path that is not there: what was ingested from it is forgotten; a path that was never known is a failure. */
  async forget(missing: Buffer): Promise<void> {
    const before = this.#counts.removed;
    await this.#forgetVanished(missing);
    if (this.#counts.removed === before)
      this.#troubles.add(showName(missing), "it is not there, and nothing was ingested from it");
  }

  /** How many files have been met so far. */
  get seen(): number {
    return this.#counts.seen;
  }

  fail(shown: string, error: unknown): void {
    this.#troubles.add(shown, error);
  }

  toOutput(): z.infer<z.ZodObject<typeof ingestFields>> {
    return {
      files_seen: this.#counts.seen,
      files_ingested: this.#counts.ingested,
      files_unchanged: this.#counts.unchanged,
      files_removed: this.#counts.removed,
      chunks_written: this.#counts.chunks,
      files_skipped: this.#counts.skipped,
      skip_reasons: Object.fromEntries(this.#reasons),
      skipped: this.#skipped,
      lines_unreadable: this.#badCount,
      unreadable: this.#badLines,
      hidden: this.#counts.hidden,
      ...this.#troubles.toOutput(),
      duration_seconds: Math.round(performance.now() - this.#startedAt) / 1000,
    };
  }

  async *#filesOf(place: Place): AsyncGenerator<WalkedFile> {
    if (place.kind === "file") {
      const stat = lstatSync(place.path, { bigint: true, throwIfNoEntry: false });
      if (stat === undefined) return this.#troubles.add(showName(place.path), "it vanished while it was looked at");
      yield {
        folder: folderOf(place.path),
        name: nameOf(place.path),
        size: Number(stat.size),
        mtimeNs: stat.mtimeNs,
        inode: stat.ino,
      };
      return;
    }
    const length = place.path.length + 1;
    const folders = walkFolders(place.path, {
      recursive: place.recursive,
      signal: this.#task.signal,
      reach: this.#options.reach,
      onHidden: () => this.#counts.hidden++,
      skipsFolder: folderSkipper(this.#task.home),
      skipsFile: (folder, name) =>
        (isHidden(name) && place.source === "") || !place.takes(showName(joinBytes(folder, name).subarray(length))),
      onError: (file, error) => this.#troubles.add(showName(file), error),
    });
    for await (const { files } of folders) yield* files;
  }

  async #takeFile(file: WalkedFile, place: Place): Promise<void> {
    const whole = pathOf(file);
    const shown = showName(whole);
    const known = this.#writer.find(whole);
    const cut = this.#cutOf(place);
    try {
      if (known !== undefined && known.stamp === stampOf(file) && known.cut === cut) {
        this.#seen.add(known.id);
        this.#counts.unchanged++;
        return;
      }
      const read = await this.#read(file, whole, place);
      if (known !== undefined) this.#seen.add(known.id);
      await this.#wait({ path: whole, shown, cut, source: place.source, ...read });
    } catch (error) {
      this.#task.signal.throwIfAborted();
      if (error instanceof Skip) {
        this.#skip(shown, error.message);
        if (known !== undefined) this.#remove([known.id]);
        return;
      }
      // What cannot be read today stays as it was.
      if (known !== undefined) this.#seen.add(known.id);
      this.#troubles.add(shown, error);
    }
  }

  #cutOf({ format }: Place): string {
    const { size, overlap, maxChunks } = this.#options;
    return JSON.stringify([1, format, size, overlap, maxChunks]);
  }

  async #read(
    file: WalkedFile,
    whole: Buffer,
    place: Place,
  ): Promise<Pick<IngestFile, "stamp" | "engine" | "title" | "bytes" | "chunks">> {
    const name = showName(file.name);
    const engine = engineFor(name);
    if (place.format === "files" && place.kind === "folder" && engine === undefined)
      throw new Skip(path.extname(name) === "" ? "no ending" : "unknown ending");
    if (file.size === 0) throw new Skip("empty");
    if (file.size > this.#options.maxBytes) throw new Skip("too large");
    const { size, overlap, maxChunks } = this.#options;
    const how: IngestHow = {
      engine: place.format === "conversation" ? "conversation" : (engine ?? "text"),
      name,
      size,
      overlap,
      maxChunks,
    };
    return await withSource(whole, this.#options, async (source) => {
      if (engine !== "pdf" && engine !== "docx" && source.head.includes(0) && !hasMark(source.head))
        throw new Skip("binary");
      const document = { domain: "ingest", how, size: source.size, pieces: () => source.pieces() } as const;
      const { head, items } = await readDocument<IngestHead, Chunk>(
        document,
        limitsOf(this.#task.config),
        this.#task.signal,
      );
      this.#noteBadLines(showName(whole), head);
      if (head.hasTooMany) throw new Skip("too many chunks");
      if (items.length === 0) throw new Skip("no text");
      return { stamp: source.stamp, engine: how.engine, title: head.title || name, bytes: source.size, chunks: items };
    });
  }

  #noteBadLines(shown: string, { badCount, badLines }: IngestHead): void {
    this.#badCount += badCount;
    for (const line of badLines) if (this.#badLines.length < maxSkipsListed) this.#badLines.push(`${shown}:${line}`);
  }

  #skip(shown: string, reason: string): void {
    this.#counts.skipped++;
    this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1);
    if (this.#skipped.length < maxSkipsListed) this.#skipped.push({ path: shown, reason });
  }

  async #wait(file: IngestFile): Promise<void> {
    this.#waiting.push(file);
    this.#waitingChunks += file.chunks.length;
    if (this.#waitingChunks >= maxChunksWaiting) await this.#store();
  }

  async #store(): Promise<void> {
    const files = this.#waiting;
    const stored = new Set<IngestFile>();
    this.#waiting = [];
    this.#waitingChunks = 0;
    try {
      await this.#writer.store(files, (id, file) => {
        stored.add(file);
        this.#seen.add(id);
        this.#counts.ingested++;
        this.#counts.chunks += file.chunks.length;
      });
    } catch (error) {
      const why = whyNotStored(error);
      if (why === undefined) throw error;
      for (const file of files)
        if (!stored.has(file)) this.#troubles.add(file.shown, `it was read but not stored: ${why}`);
    }
  }

  #report(expected: number): void {
    const { seen, chunks } = this.#counts;
    this.#task.progress({
      done: seen,
      total: Math.max(seen, expected, 1),
      message: `${seen} files seen, ${chunks} chunks written`,
    });
  }

  /** Forgets what was ingested from a place and is not there any more; what may only be unreadable is kept. */
  async #forgetVanished(folder: Buffer): Promise<void> {
    const rows = this.#db.prepare(
      `select id, path from ingest_files where path >= ? and path < ? order by path limit ${maxRowsAtOnce}`,
    );
    // In bytes, all that lies below `a` comes before `a0`, since `0` follows `/`.
    const end = Buffer.concat([folder, Buffer.from("0")]);
    for (let from = folder; ; ) {
      const page = rows.all(from, end) as { id: number; path: Buffer }[];
      const last = page.at(-1);
      if (last === undefined) return;
      from = Buffer.concat([last.path, Buffer.from([0])]);
      const gone = page.filter((row) => !this.#seen.has(row.id) && isInside(row.path, folder) && isGone(row.path));
      this.#remove(gone.map(({ id }) => id));
      if (this.#pace.isOver()) await this.#pace.giveWay();
    }
  }

  #remove(ids: readonly number[]): void {
    this.#writer.remove(ids);
    this.#counts.removed += ids.length;
  }
}

/** UTF-16 holds NUL bytes, and says what it is with a byte order mark. */
function hasMark(bytes: Uint8Array): boolean {
  return (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
}

/** True when it is certainly not there, or something else has its name. */
function isGone(file: Buffer): boolean {
  try {
    const stat = lstatSync(file);
    return !stat.isFile() && !stat.isSymbolicLink();
  } catch (error) {
    return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}
