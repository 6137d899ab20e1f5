import { compileGlob } from "../_pack/glob.ts";
import { folderOf, isInside, nameOf, showName } from "../_pack/paths.ts";
import { type FilterValues, toPath } from "./_filters.ts";

/** One step of a decision, for people. */
export interface DecisionStep {
  /** ✓ speaks for the file, ✗ against it, · says nothing. */
  readonly symbol: "✓" | "✗" | "·";
  readonly message: string;
}

export interface Decision {
  readonly isMonitored: boolean;
  readonly reason: string;
  readonly steps: readonly DecisionStep[];
}

/** Decides which files are monitored. */
export interface Decider {
  /** Step by step, in words. */
  explain(file: Buffer): Decision;
  /** True for a folder in which nothing can be monitored. */
  skipsFolder(folder: Buffer): boolean;
  /** A test for the files right in one folder: what holds for all of them is found out once. */
  inFolder(folder: Buffer): (name: Buffer) => boolean;
}

/**
 * Builds the decider. In this order: Meanwhile's own folder is always out; the nearest of include_paths and
 * exclude_paths decides, and where none matches a file is in only when include_paths is empty; then exclude_dirnames
 * and exclude_globs leave it out, unless include_dirnames (the folder it lies in) or include_globs let it in all the
 * same.
 */
export function createDecider(filters: FilterValues, home: Buffer): Decider {
  const included = filters.include_paths.map(toPath);
  const excluded = filters.exclude_paths.map(toPath);
  const excludesName = new Set(filters.exclude_dirnames);
  const includesName = new Set(filters.include_dirnames);
  const excludeGlobs = filters.exclude_globs.map((pattern) => ({ pattern, matches: compileGlob(pattern) }));
  const includeGlobs = filters.include_globs.map((pattern) => ({ pattern, matches: compileGlob(pattern) }));
  const hasOverrides = includesName.size > 0 || includeGlobs.length > 0;

  const byPath = (file: Buffer): { isIn: boolean; message: string } => {
    const nearestIn = longest(included.filter((folder) => isInside(file, folder)));
    const nearestOut = longest(excluded.filter((folder) => isInside(file, folder)));
    if (nearestOut !== undefined && nearestOut.length >= (nearestIn?.length ?? -1))
      return { isIn: false, message: `exclude_paths holds ${showName(nearestOut)}` };
    if (nearestIn !== undefined) return { isIn: true, message: `include_paths holds ${showName(nearestIn)}` };
    if (included.length > 0) return { isIn: false, message: "no folder of include_paths holds it" };
    return { isIn: true, message: "include_paths is empty, so every folder is in" };
  };
  const excludedName = (folder: Buffer) => namesOf(folder).find((name) => excludesName.has(name));
  const firstMatch = (globs: typeof excludeGlobs, file: string, name: string) =>
    globs.find(({ matches }) => matches(name) || matches(file))?.pattern;

  const inFolder = (folder: Buffer) => {
    if (isInside(folder, home) || !byPath(folder).isIn) return () => false;
    const isLetIn = includesName.has(nameOf(folder).toString());
    const isOut = !isLetIn && excludedName(folder) !== undefined;
    if (isLetIn || (!isOut && excludeGlobs.length === 0)) return () => true;
    const prefix = `${folder.toString()}/`;
    return (bytes: Buffer) => {
      const name = bytes.toString();
      const file = prefix + name;
      if (!isOut && firstMatch(excludeGlobs, file, name) === undefined) return true;
      return firstMatch(includeGlobs, file, name) !== undefined;
    };
  };

  return {
    inFolder,
    skipsFolder(folder) {
      if (isInside(folder, home)) return true;
      if (!byPath(folder).isIn) return !included.some((path) => isInside(path, folder));
      return !hasOverrides && excludesName.has(nameOf(folder).toString());
    },
    explain(file) {
      const folder = folderOf(file);
      const steps: DecisionStep[] = [];
      const end = (isMonitored: boolean, reason: string): Decision => ({ isMonitored, reason, steps });
      const note = (isFor: boolean | undefined, message: string) => {
        steps.push({ symbol: isFor === undefined ? "·" : isFor ? "✓" : "✗", message });
        return message;
      };
      if (isInside(file, home)) return end(false, note(false, "it lies in Meanwhile's own folder"));
      const { isIn, message } = byPath(folder);
      note(isIn, message);
      if (!isIn) return end(false, message);
      const text = file.toString();
      const name = nameOf(file).toString();
      const dirname = excludedName(folder);
      const glob = firstMatch(excludeGlobs, text, name);
      note(
        dirname === undefined ? undefined : false,
        dirname === undefined ? "no folder on the way is in exclude_dirnames" : `exclude_dirnames holds ${dirname}`,
      );
      note(
        glob === undefined ? undefined : false,
        glob === undefined ? "no pattern of exclude_globs matches" : `exclude_globs holds ${glob}`,
      );
      if (dirname === undefined && glob === undefined) return end(true, message);
      const parent = nameOf(folder).toString();
      if (includesName.has(parent)) return end(true, note(true, `include_dirnames holds ${parent}`));
      const letIn = firstMatch(includeGlobs, text, name);
      if (letIn !== undefined) return end(true, note(true, `include_globs holds ${letIn}`));
      note(undefined, "nothing lets it in all the same");
      return end(false, dirname === undefined ? `exclude_globs holds ${glob}` : `exclude_dirnames holds ${dirname}`);
    },
  };
}

function longest(paths: readonly Buffer[]): Buffer | undefined {
  return paths.reduce<Buffer | undefined>(
    (best, path) => (path.length > (best?.length ?? -1) ? path : best),
    undefined,
  );
}

function namesOf(folder: Buffer): string[] {
  return folder.toString().split("/");
}
