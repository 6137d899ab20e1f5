import { isAddress } from "./_links.ts";

const noteEnding = /\.(?:md|markdown)$/i;

/** True for what is read as a Markdown note. */
export function isNoteName(name: string): boolean {
  return noteEnding.test(name);
}

/** The name in a path, as written, without a note's ending. */
export function nameIn(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1).replace(noteEnding, "");
}

/** How names and paths are compared: case does not count, nor does a note's ending. */
export function toKey(path: string): string {
  return path.normalize("NFC").replace(noteEnding, "").toLowerCase();
}

/** The last part of a key. */
export function lastOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

/** The folder of a key, with its slash; empty at the top. */
export function folderOfKey(key: string): string {
  return key.slice(0, key.lastIndexOf("/") + 1);
}

/** The key of the name a link looks for; empty for a link within its own note, and for one that leads out. */
export function nameKeyOf(target: string): string {
  return leadsOut(target) ? "" : lastOf(toKey(target.replaceAll("\\", "/").trim()));
}

/** True for addresses, and for folders, which are no notes. */
export function leadsOut(target: string): boolean {
  return isAddress(target) || target.endsWith("/");
}

/** `a/b` + `../c` → `a/c`; undefined when it leads above the top. */
export function joinKeys(folder: string, target: string): string | undefined {
  const parts: string[] = [];
  for (const part of `${folder}${target}`.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === ".." && parts.pop() === undefined) return undefined;
    if (part !== "..") parts.push(part);
  }
  return parts.join("/");
}
