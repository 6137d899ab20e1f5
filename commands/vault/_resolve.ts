import type Database from "better-sqlite3";
import { maxRowsAtOnce, writeAtOnce } from "../_pack/database.ts";
import { folderOfKey, joinKeys, leadsOut, nameIn, toKey } from "./_names.ts";
import { headingKey } from "./_note.ts";

/**
 * Which note a link leads to. Case never counts between names, but a name of the very same letters wins.
 *
 * - `[[name]]`: the note of that name; of several, the one in the link's own folder, then the one nearest to the top, then
 *   the first by path.
 * - `[[folder/name]]`: the note at that path from the vault's top, else from the link's own folder, else any whose path ends so.
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

interface Candidate {
  readonly id: number;
  readonly shown: string;
  readonly path_key: string;
  readonly is_note: number;
}

type State = "resolved" | "no_note" | "no_heading" | "external";

/** Resolves so many of the links that wait for it; false when none is left. */
export function resolveSome(db: Database.Database, vault: number): boolean {
  const pending = db.prepare(
    `select vault_links.id, note, path_key as "from", target, is_path, heading, vault_links.name_key
    from vault_links join vault_files on vault_files.id = note where vault_links.vault = ? and state = 'pending' limit ${maxRowsAtOnce}`,
  );
  const candidates = db.prepare("select id, shown, path_key, is_note from vault_files where vault = ? and name_key = ?");
  const hasHeading = db.prepare("select 1 from vault_headings where note = ? and key = ? limit 1").pluck();
  const settle = db.prepare("update vault_links set state = ?, dest = ? where id = ?");
  return writeAtOnce(db, () => {
    const links = pending.all(vault) as PendingLink[];
    for (const link of links) {
      const dest = leadsOut(link.target) ? undefined : link.target === "" ? link.note : choose(link, candidates.all(vault, link.name_key) as Candidate[]);
      const state: State = leadsOut(link.target)
        ? "external"
        : dest === undefined
          ? "no_note"
          : needsHeading(link.heading) && hasHeading.get(dest, headingKey(lastHeading(link.heading))) === undefined
            ? "no_heading"
            : "resolved";
      settle.run(state, dest ?? null, link.id);
    }
    return links.length > 0;
  });
}

/** `#^block` names a block, not a heading; `#page=2` is for a viewer. Neither is looked for. */
function needsHeading(heading: string): boolean {
  return headingKey(heading) !== "" && !heading.includes("^") && !/^\w+=/.test(heading);
}

/** `#Chapter#Section` leads to the section. */
function lastHeading(heading: string): string {
  return heading.slice(heading.lastIndexOf("#") + 1);
}

function choose(link: PendingLink, candidates: readonly Candidate[]): number | undefined {
  const written = link.target.replaceAll("\\", "/").trim();
  const key = toKey(written);
  const folder = folderOfKey(link.from);
  const near = joinKeys(folder, key);
  const far = joinKeys("", key);
  const order = link.is_path === 1 ? (key.startsWith("/") ? [far] : [near, far]) : /^\.{1,2}\//.test(key) ? [near] : [far, near];
  if (link.is_path === 1 || key.includes("/")) {
    for (const path of order) {
      const found = best(
        written,
        folder,
        candidates.filter((candidate) => candidate.path_key === path),
      );
      if (found !== undefined) return found;
    }
    if (link.is_path === 1 || /^\.{0,2}\//.test(key)) return undefined;
    return best(
      written,
      folder,
      candidates.filter((candidate) => candidate.path_key.endsWith(`/${far}`)),
    );
  }
  return best(written, folder, candidates);
}

function best(written: string, folder: string, candidates: readonly Candidate[]): number | undefined {
  if (candidates.length < 2) return candidates[0]?.id;
  const name = nameIn(written);
  const score = ({ shown, path_key, is_note }: Candidate) => [
    is_note === 1 ? 0 : 1,
    nameIn(shown) === name ? 0 : 1,
    folderOfKey(path_key) === folder ? 0 : 1,
    path_key.split("/").length,
  ];
  const ranked = candidates.map((candidate) => ({ ...candidate, score: score(candidate) }));
  ranked.sort((a, b) => {
    const at = a.score.findIndex((value, index) => value !== b.score[index]);
    return at === -1 ? (a.shown < b.shown ? -1 : 1) : (a.score[at] ?? 0) - (b.score[at] ?? 0);
  });
  return ranked[0]?.id;
}
