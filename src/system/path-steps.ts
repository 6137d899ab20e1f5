import { lstatSync, readlinkSync, type Stats } from "node:fs";
import path from "node:path";

export interface PathStep {
  readonly file: string;
  readonly stat: Stats;
}

/** As many links as Linux follows in one path. */
const maxLinks = 40;

/**
 * Returns every folder and link by which the system reaches an absolute path, the root first and the target last. Links
 * are followed one at a time. Throws when something on the way is missing or cannot be read.
 */
export function stepsTo(file: string): PathStep[] {
  const { root } = path.parse(file);
  const steps: PathStep[] = [{ file: root, stat: lstatSync(root) }];
  const names = toNames(file);
  let links = 0;
  let at = root;
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    const next = path.join(at, name);
    const stat = lstatSync(next);
    steps.push({ file: next, stat });
    if (!stat.isSymbolicLink()) {
      at = next;
      continue;
    }
    links += 1;
    if (links > maxLinks) throw new Error(`${file} has more than ${maxLinks} symbolic links`);
    const target = readlinkSync(next);
    if (path.isAbsolute(target)) at = root;
    names.unshift(...toNames(target));
  }
  return steps;
}

const toNames = (file: string) => file.split(path.sep).filter((name) => name !== "");
