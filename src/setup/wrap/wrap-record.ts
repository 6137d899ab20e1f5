import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Home } from "../../paths.ts";
import type { Entry } from "../host.ts";
import type { Hunk } from "./hunk.ts";

/**
 * What became of one entry, so that it can be what it was: its lines as they were, and as we left them. As long as ours
 * are still there, whatever else has changed in the file, the old ones come back byte for byte.
 */
export interface WrapDeed {
  readonly file: string;
  readonly keys: readonly string[];
  readonly lines: Hunk;
  readonly before: Entry;
  readonly after: Entry;
}

/** What is wrapped, beside the record of setup. Entries hold keys and tokens: only their user can read it. */
export class WrapRecord {
  readonly #folder: string;
  readonly #file: string;

  constructor(home: Home) {
    this.#folder = path.join(home.folder, "setup");
    this.#file = path.join(this.#folder, "wrapped.json");
  }

  find(file: string, keys: readonly string[]): WrapDeed | undefined {
    return this.#read().find((deed) => isAbout(deed, file, keys));
  }

  keep(deeds: readonly WrapDeed[]): void {
    this.#write([...this.#others(deeds), ...deeds]);
  }

  forget(deeds: readonly Pick<WrapDeed, "file" | "keys">[]): void {
    const others = this.#others(deeds);
    if (others.length !== this.#read().length) this.#write(others);
  }

  #others(deeds: readonly Pick<WrapDeed, "file" | "keys">[]): WrapDeed[] {
    return this.#read().filter((known) => !deeds.some(({ file, keys }) => isAbout(known, file, keys)));
  }

  #read(): WrapDeed[] {
    try {
      const deeds = JSON.parse(readFileSync(this.#file, "utf8")) as unknown;
      return Array.isArray(deeds) ? (deeds as WrapDeed[]) : [];
    } catch {
      // Without a record, an entry is what stands behind ours in it.
      return [];
    }
  }

  #write(deeds: readonly WrapDeed[]): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    writeFileSync(`${this.#file}.new`, `${JSON.stringify(deeds, null, 2)}\n`, { mode: 0o600 });
    renameSync(`${this.#file}.new`, this.#file);
  }
}

function isAbout(deed: WrapDeed, file: string, keys: readonly string[]): boolean {
  return deed.file === file && deed.keys.length === keys.length && deed.keys.every((key, index) => key === keys[index]);
}
