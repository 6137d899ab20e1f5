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
  const rules = toRules(filters, home);
  const { included, excludesName, includesName, includeGlobs } = rules;
  const hasOverrides = includesName.size > 0 || includeGlobs.length > 0;
  return {
    inFolder: (folder) => decideIn(rules, folder),
    skipsFolder(folder) {
      if (isInside(folder, home)) return true;
      if (!byPath(rules, folder).isIn) return !included.some((path) => isInside(path, folder));
      return !hasOverrides && excludesName.has(nameOf(folder).toString());
    },
    explain: (file) => explain(rules, file),
  };
}

type Rules = ReturnType<typeof toRules>;

/** The filters, ready to be asked. */
function toRules(filters: FilterValues, home: Buffer) {
  const toGlob = (pattern: string) => ({ pattern, matches: compileGlob(pattern) });
  return {
    home,
    included: filters.include_paths.map(toPath),
    excluded: filters.exclude_paths.map(toPath),
    excludesName: new Set(filters.exclude_dirnames),
    includesName: new Set(filters.include_dirnames),
    excludeGlobs: filters.exclude_globs.map(toGlob),
    includeGlobs: filters.include_globs.map(toGlob),
  };
}

function byPath({ included, excluded }: Rules, file: Buffer): { isIn: boolean; message: string } {
  const nearestIn = longest(included.filter((folder) => isInside(file, folder)));
  const nearestOut = longest(excluded.filter((folder) => isInside(file, folder)));
  if (nearestOut !== undefined && nearestOut.length >= (nearestIn?.length ?? -1))
    return { isIn: false, message: `exclude_paths holds ${showName(nearestOut)}` };
  if (nearestIn !== undefined) return { isIn: true, message: `include_paths holds ${showName(nearestIn)}` };
  if (included.length > 0) return { isIn: false, message: "no folder of include_paths holds it" };
  return { isIn: true, message: "include_paths is empty, so every folder is in" };
}

function decideIn(rules: Rules, folder: Buffer): (name: Buffer) => boolean {
  const { excludeGlobs, includeGlobs } = rules;
  if (isInside(folder, rules.home) || !byPath(rules, folder).isIn) return () => false;
  const isLetIn = rules.includesName.has(nameOf(folder).toString());
  const isOut = !isLetIn && excludedName(rules, folder) !== undefined;
  if (isLetIn || (!isOut && excludeGlobs.length === 0)) return () => true;
  const prefix = `${folder.toString()}/`;
  return (bytes) => {
    const name = bytes.toString();
    const file = prefix + name;
    if (!isOut && firstMatch(excludeGlobs, file, name) === undefined) return true;
    return firstMatch(includeGlobs, file, name) !== undefined;
  };
}

function explain(rules: Rules, file: Buffer): Decision {
  const folder = folderOf(file);
  const steps: DecisionStep[] = [];
  const end = (isMonitored: boolean, reason: string): Decision => ({ isMonitored, reason, steps });
  const note = (isFor: boolean | undefined, message: string) => {
    steps.push({ symbol: isFor === undefined ? "·" : isFor ? "✓" : "✗", message });
    return message;
  };
  const against = (found: string | undefined, filter: string, otherwise: string) =>
    found === undefined ? void note(undefined, otherwise) : note(false, `${filter} holds ${found}`);
  if (isInside(file, rules.home)) return end(false, note(false, "it lies in Meanwhile's own folder"));
  const { isIn, message } = byPath(rules, folder);
  note(isIn, message);
  if (!isIn) return end(false, message);
  const text = file.toString();
  const name = nameOf(file).toString();
  const byName = against(
    excludedName(rules, folder),
    "exclude_dirnames",
    "no folder on the way is in exclude_dirnames",
  );
  const byGlob = against(
    firstMatch(rules.excludeGlobs, text, name),
    "exclude_globs",
    "no pattern of exclude_globs matches",
  );
  const reason = byName ?? byGlob;
  if (reason === undefined) return end(true, message);
  const parent = nameOf(folder).toString();
  if (rules.includesName.has(parent)) return end(true, note(true, `include_dirnames holds ${parent}`));
  const letIn = firstMatch(rules.includeGlobs, text, name);
  if (letIn !== undefined) return end(true, note(true, `include_globs holds ${letIn}`));
  note(undefined, "nothing lets it in all the same");
  return end(false, reason);
}

function excludedName({ excludesName }: Rules, folder: Buffer): string | undefined {
  const names = folder.toString().split("/");
  return names.find((name) => excludesName.has(name));
}

function firstMatch(globs: Rules["includeGlobs"], file: string, name: string): string | undefined {
  return globs.find(({ matches }) => matches(name) || matches(file))?.pattern;
}

function longest(paths: readonly Buffer[]): Buffer | undefined {
  return paths.reduce<Buffer | undefined>(
    (best, path) => (path.length > (best?.length ?? -1) ? path : best),
    undefined,
  );
}
