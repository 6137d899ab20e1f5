import { existsSync, readFileSync, realpathSync } from "node:fs";
import path from "node:path";
import { systemClock, within } from "../clock.ts";
import { isOutOfDescriptors, messageOf, outOfDescriptors } from "../errors.ts";
import type { CatalogEntry, LoadProblem } from "./catalog.ts";
import { isCommand } from "./command.ts";
import type { FoundCommand } from "./discover.ts";
import { loadModule } from "./load.ts";
import { placeOf, type SourcePlace } from "./place.ts";

const defaultLimitMs = 10_000;

/** Loads one command file; what is wrong with it becomes a problem, not an exception. */
export async function loadEntry(found: FoundCommand, limitMs = defaultLimitMs): Promise<CatalogEntry | LoadProblem> {
  const { file, toolName, path: words } = found;
  const problem = (text: string): LoadProblem => ({ toolName, file, text });
  if (found.problem !== undefined) return problem(found.problem);
  if (found.command !== undefined) return { toolName, path: words, file, command: found.command };
  try {
    // A file that waits for something that never comes must not keep the others from being served.
    const loaded = await within(systemClock, limitMs, loadModule(file), () => {
      throw new Error(`it did not finish loading within ${limitMs / 1000} s; a top-level await that never ends?`);
    });
    const exported = loaded.default;
    if (!isCommand(exported))
      return problem(
        `its default export is ${exported === undefined ? "missing" : "not a command"}; write: export default defineCommand({ … })`,
      );
    const { name = words.join(" ") } = exported;
    if (name !== words.join(" "))
      return problem(
        `its \`name\` is "${name}", and a command in a file is named by where that lies: "${words.join(" ")}"; take \`name\` out, or move the file`,
      );
    return { toolName, path: words, file, command: exported };
  } catch (error) {
    if (isShortOfDescriptors(error)) return { ...problem(outOfDescriptors), isTransient: true };
    return problem(describeLoadError(error, file));
  }
}

/** Node gives the error another code where it cannot open a package.json. */
function isShortOfDescriptors(error: unknown): boolean {
  return isOutOfDescriptors(error) || messageOf(error).endsWith("too many open files.");
}

function describeLoadError(error: unknown, file: string): string {
  const text = messageOf(error).split("\n")[0] ?? "";
  const kind = error instanceof SyntaxError ? "SyntaxError: " : "";
  return `${kind}${text}${whereIn(file, placeOf(error))}${aliasHint(text, file)}`;
}

/** A name that only a tsconfig knows means nothing when the file is run. */
function aliasHint(text: string, file: string): string {
  const name = /^Cannot find package '([^']+)'/.exec(text)?.[1];
  if (name === undefined || !isTsconfigPath(name, path.dirname(file))) return "";
  return "; `paths` of a tsconfig are for the type checker alone: import it by a relative path, or give it a name in the `imports` of package.json (#lib/…)";
}

function isTsconfigPath(name: string, folder: string): boolean {
  const file = path.join(folder, "tsconfig.json");
  const isNamed =
    existsSync(file) &&
    [`"${name}"`, `"${name.split("/")[0]}/*"`].some((key) => readFileSync(file, "utf8").includes(key));
  const parent = path.dirname(folder);
  return /^[@~]\//.test(name) || isNamed || (parent !== folder && isTsconfigPath(name, parent));
}

/** A line of the file itself, or of another that it imports, by the way from one to the other. */
function whereIn(file: string, place: SourcePlace | undefined): string {
  if (place === undefined) return "";
  const way = path.relative(path.dirname(realpathSync(file)), place.file);
  return way === path.basename(file) ? ` (line ${place.line})` : ` (${way}:${place.line})`;
}
