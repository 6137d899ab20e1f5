import type Database from "better-sqlite3";
import { folderOfKey, nameIn } from "./_names.ts";

/** A file that a link may lead to, since it has the name. */
export interface Candidate {
  readonly id: number;
  readonly shown: string;
  readonly path_key: string;
  readonly is_note: number;
}

/** So many files are held in memory, at most, unless one name alone has more. */
const maxHeld = 100_000;

/**
 * The files of a vault by name. Each name is read once: there may be thousands of one name, and a link to it in each of
 * them.
 */
export class Candidates {
  readonly #read;
  readonly #vault: number;
  readonly #names = new Map<string, Named>();
  #held = 0;
  #version = -1;

  constructor(db: Database.Database, vault: number) {
    this.#read = db.prepare("select id, shown, path_key, is_note from vault_files where vault = ? and name_key = ?");
    this.#vault = vault;
  }

  /** Lets go of what was read when the vault had another version. */
  useVersion(version: number): void {
    if (version !== this.#version) this.#clear();
    this.#version = version;
  }

  named(key: string): Named {
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const files = this.#read.all(this.#vault, key) as Candidate[];
    if (this.#held + files.length > maxHeld) this.#clear();
    const named = new Named(files);
    this.#names.set(key, named);
    // A name that nobody has takes room, too.
    this.#held += files.length + 1;
    return named;
  }

  #clear(): void {
    this.#names.clear();
    this.#held = 0;
  }
}

/** The files of one name. */
class Named {
  readonly #files: readonly Candidate[];
  readonly #byPath = new Map<string, Candidate[]>();
  readonly #byFolder = new Map<string, Candidate[]>();
  /** The best wherever the link is, by what was written. */
  readonly #anywhere = new Map<string, Candidate | undefined>();

  constructor(files: readonly Candidate[]) {
    this.#files = files;
    for (const file of files) {
      addTo(this.#byPath, file.path_key, file);
      addTo(this.#byFolder, folderOfKey(file.path_key), file);
    }
  }

  /** The best of those at this very path: several differ in case or ending alone. */
  at(path: string, written: string): Candidate | undefined {
    return firstOf(this.#byPath.get(path) ?? [], nameIn(written), undefined);
  }

  /**
   * The best of those whose path ends so, seen from a folder. Only files of that folder gain by being seen from there,
   * so that the best is one of them or the one that is best from anywhere.
   */
  best(written: string, folder: string, ending = ""): Candidate | undefined {
    const name = nameIn(written);
    const fits = ({ path_key }: Candidate) => path_key.endsWith(ending);
    const asked = `${ending}\0${name}`;
    if (!this.#anywhere.has(asked)) {
      if (this.#anywhere.size >= maxHeld) this.#anywhere.clear();
      this.#anywhere.set(asked, firstOf(ending === "" ? this.#files : this.#files.filter(fits), name, undefined));
    }
    const anywhere = this.#anywhere.get(asked);
    return anywhere === undefined
      ? undefined
      : firstOf([anywhere, ...(this.#byFolder.get(folder) ?? []).filter(fits)], name, folder);
  }
}

function addTo(files: Map<string, Candidate[]>, key: string, file: Candidate): void {
  const there = files.get(key);
  if (there === undefined) files.set(key, [file]);
  else there.push(file);
}

/** The one that comes first in the order of rules; without a folder, the rule about it is left out. */
function firstOf(files: readonly Candidate[], name: string, folder: string | undefined): Candidate | undefined {
  if (files.length < 2) return files[0];
  const scoreOf = ({ shown, path_key, is_note }: Candidate) => [
    is_note === 1 ? 0 : 1,
    nameIn(shown) === name ? 0 : 1,
    folder === undefined || folderOfKey(path_key) === folder ? 0 : 1,
    path_key.split("/").length,
  ];
  let first: { readonly file: Candidate; readonly score: readonly number[] } | undefined;
  for (const file of files) {
    const score = scoreOf(file);
    if (first === undefined || isBefore({ file, score }, first)) first = { file, score };
  }
  return first?.file;
}

type Scored = { readonly file: Candidate; readonly score: readonly number[] };

function isBefore(a: Scored, b: Scored): boolean {
  const at = a.score.findIndex((value, index) => value !== b.score[index]);
  return at === -1 ? a.file.shown < b.file.shown : (a.score[at] ?? 0) < (b.score[at] ?? 0);
}
