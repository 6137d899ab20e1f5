import type Database from "better-sqlite3";
import { maxRowsAtOnce, writeAtOnce } from "../_pack/database.ts";
import { type Candidate, Candidates } from "./_candidates.ts";
import { folderOfKey, joinKeys, leadsOut, toKey } from "./_names.ts";
import { blockKey, headingKey } from "./_note.ts";
import { versionOf } from "./_store.ts";

/**
 * Which note a link leads to. Case never counts between names, but a name of the very same letters wins.
 *
 * - `[[name]]`: the note of that name; of several, the one in the link's own folder, then the one nearest to the top,
 * then
 *   the first by path.
 * - `[[folder/name]]`: the note at that path from the vault's top, else from the link's own folder, else any whose path
 * ends so.
 *   With `./` or `../` in front: from the link's own folder alone.
 * - `[text](path)`: from the link's own folder, else from the top; `/path` from the top alone.
 * - A note wins over a file without ending of the same name.
 */

interface PendingLink {
  readonly id: number;
  readonly note: number;
  readonly from: string;
  readonly target: string;
  readonly is_path: number;
  readonly heading: string;
  readonly name_key: string;
}

type State = "resolved" | "no_note" | "no_heading" | "no_block" | "external";

interface Settled {
  readonly id: number;
  readonly state: State;
  readonly dest: number | undefined;
}

/** Resolves the links of one vault that wait for it, some at a time. */
export class Resolver {
  readonly #db: Database.Database;
  readonly #vault: number;
  readonly #pending;
  readonly #hasHeading;
  readonly #hasBlock;
  readonly #settle;
  readonly #candidates: Candidates;

  constructor(db: Database.Database, vault: number) {
    this.#db = db;
    this.#vault = vault;
    this.#pending = db.prepare(
      `select vault_links.id, note, path_key as "from", target, is_path, heading, vault_links.name_key
      from vault_links join vault_files on vault_files.id = note where vault_links.vault = ? and state = 'pending' limit ${maxRowsAtOnce}`,
    );
    this.#hasHeading = db.prepare("select 1 from vault_headings where note = ? and key = ? limit 1").pluck();
    this.#hasBlock = db.prepare("select 1 from vault_blocks where note = ? and key = ?").pluck();
    this.#settle = db.prepare("update vault_links set state = ?, dest = ? where id = ?");
    this.#candidates = new Candidates(db, vault);
  }

  /** How many links wait. */
  count(): number {
    return this.#db
      .prepare("select count(*) from vault_links where vault = ? and state = 'pending'")
      .pluck()
      .get(this.#vault) as number;
  }

  /**
   * Resolves some links and says how many; undefined when none is left. Only the outcome is written while others wait.
   * None is resolved when another run has changed the vault meanwhile: the next time looks at all anew.
   */
  resolveSome(): number | undefined {
    const version = versionOf(this.#db, this.#vault);
    this.#candidates.useVersion(version);
    const links = (this.#pending.all(this.#vault) as PendingLink[]).map((link) => this.#resolve(link));
    if (links.length === 0) return undefined;
    return this.#write(links, version) ? links.length : 0;
  }

  /** False, with nothing written, when the vault is no longer what it was. */
  #write(links: readonly Settled[], version: number): boolean {
    return writeAtOnce(this.#db, () => {
      if (versionOf(this.#db, this.#vault) !== version) return false;
      for (const { id, state, dest } of links) this.#settle.run(state, dest ?? null, id);
      return true;
    });
  }

  #resolve(link: PendingLink): Settled {
    const { id, note, target, heading } = link;
    if (leadsOut(target)) return { id, state: "external", dest: undefined };
    const dest = target === "" ? note : choose(link, this.#candidates)?.id;
    if (dest === undefined) return { id, state: "no_note", dest };
    return { id, state: this.#stateWithin(dest, lastHeading(heading)), dest };
  }

  #stateWithin(dest: number, heading: string): State {
    if (heading.startsWith("^"))
      return this.#hasBlock.get(dest, blockKey(heading.slice(1))) === undefined ? "no_block" : "resolved";
    return needsHeading(heading) && this.#hasHeading.get(dest, headingKey(heading)) === undefined
      ? "no_heading"
      : "resolved";
  }
}

/** `#page=2` is for a viewer, and not looked for. */
function needsHeading(heading: string): boolean {
  return headingKey(heading) !== "" && !/^\w+=/.test(heading);
}

/** `#Chapter#Section` leads to the section. */
function lastHeading(heading: string): string {
  return heading.slice(heading.lastIndexOf("#") + 1);
}

function choose(link: PendingLink, candidates: Candidates): Candidate | undefined {
  const written = link.target.replaceAll("\\", "/").trim();
  const key = toKey(written);
  const folder = folderOfKey(link.from);
  const named = candidates.named(link.name_key);
  if (link.is_path === 0 && !key.includes("/")) return named.best(written, folder);
  const near = joinKeys(folder, key);
  const far = joinKeys("", key);
  const order =
    link.is_path === 1 ? (key.startsWith("/") ? [far] : [near, far]) : /^\.{1,2}\//.test(key) ? [near] : [far, near];
  for (const path of order) {
    const found = path === undefined ? undefined : named.at(path, written);
    if (found !== undefined) return found;
  }
  if (link.is_path === 1 || far === undefined || /^\.{0,2}\//.test(key)) return undefined;
  return named.best(written, folder, `/${far}`);
}
