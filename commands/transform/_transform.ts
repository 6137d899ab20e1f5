import path from "node:path";
import { CommandError } from "meanwhile";
import { showName } from "../_pack/paths.ts";
import type { Reach } from "../_pack/reach.ts";
import { type Cache, sha256Of } from "./_cache.ts";
import { type EngineName, type EngineOptions, engineFor, engineKey, type Transformed, transformBytes } from "./_engines.ts";
import { readSource } from "./_source.ts";

export interface Wish {
  readonly engine: EngineName | "auto";
  readonly options: EngineOptions;
  readonly maxBytes: number;
  readonly reach: Reach;
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
export async function transformFile(cache: Cache, file: Buffer, wish: Wish): Promise<TransformedFile> {
  const shown = showName(file);
  const { bytes } = readSource(file, wish);
  const engine = wish.engine === "auto" ? chooseEngine(shown, bytes) : wish.engine;
  const sha256 = sha256Of(bytes);
  const key = cache.keyOf(sha256, engineKey(engine, wish.options, shown));
  const known = cache.find(key);
  const title = path.basename(shown);
  if (known !== undefined) return { ...known, title: known.title || title, engine, sha256, isCached: true, file: cache.fileOf(key) };
  const made = await transformBytes(engine, { bytes, name: title, options: wish.options, signal: wish.signal });
  const isKept = cache.keep({ key, sha256, engine, source: shown, ...made });
  return { ...made, title: made.title || title, engine, sha256, isCached: false, file: isKept ? cache.fileOf(key) : undefined };
}

/** By the file's ending; without a known one, by its first bytes. */
export function chooseEngine(name: string, bytes: Uint8Array): EngineName {
  const named = engineFor(name);
  if (named !== undefined) return named;
  if (Buffer.from(bytes.subarray(0, 5)).toString("latin1") === "%PDF-") return "pdf";
  if (bytes.subarray(0, 65_536).includes(0)) throw new CommandError("it is binary, and no engine knows its ending; choose one with `engine`");
  return "text";
}
