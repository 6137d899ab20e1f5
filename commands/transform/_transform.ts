import path from "node:path";
import { type Limits, Unreadable } from "../_pack/limits.ts";
import { showName } from "../_pack/paths.ts";
import type { Reach } from "../_pack/reach.ts";
import type { Document } from "../_pack/reader-process.ts";
import { readDocument } from "../_pack/readers.ts";
import type { Cache } from "./_cache.ts";
import { type EngineName, type EngineOptions, engineFor, engineKey, type Transformed } from "./_engines.ts";
import type { TransformHow } from "./_reader.ts";
import { type Source, withSource } from "./_source.ts";

export interface Wish {
  readonly engine: EngineName | "auto";
  readonly options: EngineOptions;
  readonly maxBytes: number;
  readonly reach: Reach;
  readonly limits: Limits;
  readonly signal: AbortSignal;
}

export interface TransformedFile extends Transformed {
  readonly engine: EngineName;
  readonly sha256: string;
  readonly isCached: boolean;
  /** Where the whole text lies; undefined when it is too large to be kept. */
  readonly file: string | undefined;
}

/** Turns one file into text, from the cache when it was done before. */
export function transformFile(cache: Cache, file: Buffer, wish: Wish): Promise<TransformedFile> {
  return withSource(file, wish, async (source) => {
    const shown = showName(file);
    const engine = wish.engine === "auto" ? chooseEngine(shown, source.head) : wish.engine;
    const sha256 = await source.sha256();
    const key = cache.keyOf(sha256, engineKey(engine, wish.options, shown));
    const known = cache.find(key);
    const title = path.basename(shown);
    if (known !== undefined)
      return { ...known, title: known.title || title, engine, sha256, isCached: true, file: cache.fileOf(key) };
    const made = await makeText(source, { engine, name: title, options: wish.options }, wish);
    const isKept = cache.keep({ key, sha256, engine, source: shown, ...made });
    return {
      ...made,
      title: made.title || title,
      engine,
      sha256,
      isCached: false,
      file: isKept ? cache.fileOf(key) : undefined,
    };
  });
}

async function makeText(source: Source, how: TransformHow, { limits, signal }: Wish): Promise<Transformed> {
  const document: Document = { domain: "transform", how, size: source.size, pieces: () => source.pieces() };
  const { head, text } = await readDocument<Omit<Transformed, "text">>(document, limits, signal);
  return { ...head, text };
}

/** By the file's ending; without a known one, by its first bytes. */
function chooseEngine(name: string, bytes: Uint8Array): EngineName {
  const named = engineFor(name);
  if (named !== undefined) return named;
  if (Buffer.from(bytes.subarray(0, 5)).toString("latin1") === "%PDF-") return "pdf";
  if (bytes.subarray(0, 65_536).includes(0))
    throw new Unreadable("it is binary, and no engine knows its ending; choose one with `engine`");
  return "text";
}
