import type { Limits } from "../_pack/limits.ts";
import type { Reading } from "../_pack/read-bytes.ts";
import { type EngineName, type EngineOptions, transformBytes } from "./_engines.ts";

/** How a file is turned into text. */
export interface TransformHow {
  readonly engine: EngineName;
  /** The file's name, for its ending. */
  readonly name: string;
  readonly options: EngineOptions;
}

/** Runs in the process that reads documents. */
export async function read(
  bytes: Uint8Array,
  { engine, name, options }: TransformHow,
  limits: Limits,
): Promise<Reading> {
  const { text, title, facts } = await transformBytes(engine, { bytes, name, options, limits });
  return { head: { title, facts }, text };
}
