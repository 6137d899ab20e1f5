import path from "node:path";
import type Database from "better-sqlite3";
import { createPace } from "../_pack/walk.ts";
import type { LinkKind } from "./_links.ts";
import { nameIn } from "./_names.ts";
import { Names } from "./_nearest.ts";
import { headingKey } from "./_note.ts";
import { brokenStates } from "./_store.ts";

/** A broken link, and what could be written instead. */
export interface Proposal {
  readonly note: string;
  readonly file: Buffer;
  readonly stamp: string;
  readonly line: number;
  readonly kind: LinkKind;
  readonly target: string;
  readonly heading: string;
  readonly written: string;
}

interface Broken extends Omit<Proposal, "written"> {
  readonly is_path: number;
  readonly state: "no_note" | "no_heading" | "no_block";
  readonly dest: number | null;
}

interface File {
  readonly shown: string;
  readonly is_note: number;
}

interface Wished {
  /** Only the links of this note, by its path below the vault. */
  readonly note: string;
  readonly limit: number;
  readonly signal: AbortSignal;
}

/** So many broken links are looked at in a run. */
const maxBroken = 10_000;

/** What could be written in place of a vault's broken links: the one name that is nearest, if there is one. */
export async function proposeRepairs(
  db: Database.Database,
  vault: number,
  { note, limit, signal }: Wished,
): Promise<{ proposals: Proposal[]; broken: number; without: number }> {
  const where = `vault_links.vault = @vault and state in ${brokenStates} and (@note = '' or shown = @note)`;
  const from = "from vault_links join vault_files on vault_files.id = note";
  const broken = db.prepare(`select count(*) ${from} where ${where}`).pluck().get({ vault, note }) as number;
  const rows = db.prepare(
    `select shown as note, path as file, stamp, line, kind, target, heading, is_path, state, dest ${from}
    where ${where} order by shown, line, vault_links.id limit ${maxBroken}`,
  );
  const finder = new Finder(db, vault);
  const pace = createPace(signal);
  const proposals: Proposal[] = [];
  let without = 0;
  for (const link of rows.all({ vault, note }) as Broken[]) {
    if (proposals.length === limit) break;
    const written = finder.find(link);
    if (written === undefined) without += 1;
    else proposals.push({ ...link, written });
    if (pace.isOver()) await pace.giveWay();
  }
  return { proposals, broken, without };
}

class Finder {
  readonly #files = new Names<File>();
  readonly #names = new Map<string, number>();
  readonly #headings;
  readonly #blocks;
  /** Each name is looked for once, however many links have it. */
  readonly #found = new Map<string, readonly File[]>();

  constructor(db: Database.Database, vault: number) {
    for (const file of db
      .prepare("select shown, is_note from vault_files where vault = ?")
      .iterate(vault) as Iterable<File>) {
      const name = nameIn(file.shown);
      this.#files.add(name, file);
      this.#names.set(name.toLowerCase(), (this.#names.get(name.toLowerCase()) ?? 0) + 1);
    }
    this.#headings = db.prepare("select text from vault_headings where note = ?").pluck();
    this.#blocks = db.prepare("select key from vault_blocks where note = ?").pluck();
  }

  find(link: Broken): string | undefined {
    const isWiki = link.is_path === 0;
    if (link.state !== "no_note") {
      const within = this.#within(link);
      return within === undefined ? undefined : `${isWiki ? link.target : encode(link.target)}#${within}`;
    }
    const file = this.#fileFor(link);
    if (file === undefined) return undefined;
    const heading = link.heading === "" ? "" : `#${isWiki ? link.heading : encode(link.heading)}`;
    const target = isWiki
      ? this.#wikiTarget(link, file)
      : encode(path.posix.relative(path.posix.dirname(link.note), file.shown));
    return target === undefined ? undefined : target + heading;
  }

  /**
   * Of several that are equally near, the note, then the one in the link's own folder; none where that does not decide.
   */
  #fileFor({ target, note }: Broken): File | undefined {
    const name = nameIn(target.replaceAll("\\", "/").trim());
    const found = this.#found.get(name) ?? this.#files.nearest(name);
    this.#found.set(name, found);
    const folder = path.posix.dirname(note);
    for (const fits of [
      () => true,
      ({ is_note }: File) => is_note === 1,
      ({ shown }: File) => path.posix.dirname(shown) === folder,
    ]) {
      const [only, another] = found.filter(fits);
      if (only !== undefined && another === undefined) return isWritable(only.shown) ? only : undefined;
    }
    return undefined;
  }

  /** The name alone, where only one has it and only the name was written; else the path from the top. */
  #wikiTarget({ target }: Broken, { shown, is_note }: File): string | undefined {
    const whole = is_note === 1 ? shown.replace(/\.(?:md|markdown)$/i, "") : shown;
    const name = path.posix.basename(whole);
    const isOnly = this.#names.get(nameIn(shown).toLowerCase()) === 1;
    const written = isOnly && !target.includes("/") ? name : whole;
    return /[[\]|#^\\]/.test(written) ? undefined : written;
  }

  /** The nearest heading or block of the note that is there. */
  #within({ state, heading, dest, is_path }: Broken): string | undefined {
    const wanted = heading.slice(heading.lastIndexOf("#") + 1);
    const names = new Names<string>();
    if (state === "no_block") {
      for (const block of this.#blocks.all(dest) as string[]) names.add(block, block);
      return onlyOf(names.nearest(wanted.slice(1)).map((block) => `^${block}`));
    }
    for (const text of this.#headings.all(dest) as string[]) names.add(headingKey(text), text);
    const found = onlyOf([...new Set(names.nearest(headingKey(wanted)))]);
    if (found === undefined) return undefined;
    return is_path === 1
      ? encode(headingKey(found).replaceAll(" ", "-"))
      : found.replaceAll(/[#|^[\]\\]+/g, " ").trim();
  }
}

function onlyOf<T>(list: readonly T[]): T | undefined {
  return list.length === 1 ? list[0] : undefined;
}

/** A name with escapes stands for bytes that cannot be written in a link. */
function isWritable(shown: string): boolean {
  return !/%[0-9A-F]{2}|[\n\r]/.test(shown);
}

/** As a Markdown link writes it: no spaces, no parentheses, nothing that would end it. */
function encode(text: string): string {
  return encodeURI(text).replaceAll(
    /[()#?<>]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
