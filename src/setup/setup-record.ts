import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { CommandError, messageOf, RuntimeError } from "../errors.ts";
import { ensureHome, type Home } from "../paths.ts";

/**
 * What setup did, so that taking it back leaves no trace: `mcpServers: {}` may have been there before, or be ours.
 * The text of a file before our first change is kept as a backup; as long as the file is as we left it, that text comes
 * back byte for byte. Once somebody else has changed the file, only our entry is taken out, with what we made around it
 * if that is empty; where there was an entry before ours, that one is put back.
 */
export interface Deed {
  readonly file: string;
  readonly name: string;
  /** The file as we left it. */
  readonly after: string;
  /**
   * What brings the file back as we found it: the digest of a backup, or null when there was no file. Missing when that
   * would undo more than we did.
   */
  readonly before?: string | null;
  /** The digest of the backup that holds the entry we changed, when there was one that was not ours. */
  readonly earlier?: string;
  /** There was no file before us. */
  readonly isNewFile: boolean;
  /** How many objects around the entry are ours. */
  readonly made: number;
  /** Folders we made for the file, outermost first. */
  readonly folders: readonly string[];
  /** The digest of the entry as we left it. */
  readonly entry?: string;
}

const maxBackups = 50;

export function digestOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** The deeds and backups below the home folder. */
export class SetupRecord {
  readonly #home: Home;
  readonly #folder: string;
  readonly #file: string;

  constructor(home: Home) {
    this.#home = home;
    this.#folder = path.join(home.folder, "setup");
    this.#file = path.join(this.#folder, "record.json");
  }

  /** Makes room for what is to be kept. Throws a sentence when there is none. */
  prepare(): void {
    try {
      ensureHome(this.#home);
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    } catch (cause) {
      if (cause instanceof RuntimeError) throw cause;
      throw new CommandError(`Nothing was changed: a backup cannot be kept in ${this.#folder}: ${messageOf(cause)}.`, {
        cause,
      });
    }
  }

  find(file: string, name: string): Deed | undefined {
    return this.#read().find((deed) => deed.file === file && deed.name === name);
  }

  /** The files in which there is an entry of ours. */
  files(): readonly string[] {
    return [...new Set(this.#read().map(({ file }) => file))];
  }

  keep(deed: Deed): void {
    this.#write([...this.#others(deed.file, deed.name), deed]);
  }

  forget(file: string, name: string): void {
    if (this.find(file, name) !== undefined) this.#write(this.#others(file, name));
  }

  /** Keeps a copy that only its user can read, and says where. */
  backUp(file: string, bytes: Buffer): string {
    const backup = this.#backupOf(file, digestOf(bytes));
    writeFileSync(backup, bytes, { mode: 0o600 });
    this.#dropOldest();
    return backup;
  }

  /** The bytes a file once had. */
  restore(file: string, digest: string): Buffer | undefined {
    const backup = this.#backupOf(file, digest);
    const bytes = existsSync(backup) ? readFileSync(backup) : undefined;
    return bytes !== undefined && digestOf(bytes) === digest ? bytes : undefined;
  }

  #backupOf(file: string, digest: string): string {
    return path.join(this.#folder, `${digest.slice(0, 16)}-${path.basename(file)}`);
  }

  #others(file: string, name: string): Deed[] {
    return this.#read().filter((deed) => deed.file !== file || deed.name !== name);
  }

  #read(): Deed[] {
    try {
      const deeds = JSON.parse(readFileSync(this.#file, "utf8")) as unknown;
      return Array.isArray(deeds) ? (deeds as Deed[]) : [];
    } catch {
      // Without a record the entry alone is removed.
      return [];
    }
  }

  #write(deeds: readonly Deed[]): void {
    writeFileSync(`${this.#file}.new`, `${JSON.stringify(deeds, null, 2)}\n`, { mode: 0o600 });
    renameSync(`${this.#file}.new`, this.#file);
  }

  #dropOldest(): void {
    const needed = new Set(
      this.#read().flatMap(({ file, before, earlier }) =>
        [before, earlier].flatMap((digest) => (digest ? [this.#backupOf(file, digest)] : [])),
      ),
    );
    const backups = readdirSync(this.#folder)
      .map((name) => path.join(this.#folder, name))
      .filter((file) => /^[0-9a-f]{16}-/.test(path.basename(file)) && !needed.has(file))
      .map((file) => ({ file, at: statSync(file).mtimeMs }))
      .sort((a, b) => b.at - a.at);
    for (const { file } of backups.slice(maxBackups)) rmSync(file);
  }
}
