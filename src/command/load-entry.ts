import { systemClock, within } from "../clock.ts";
import { isOutOfDescriptors, messageOf, outOfDescriptors } from "../errors.ts";
import type { CatalogEntry, LoadProblem } from "./catalog.ts";
import { isCommand } from "./command.ts";
import type { FoundCommand } from "./discover.ts";
import { loadModule } from "./load.ts";
import { describeLoadError } from "./load-error.ts";

const defaultLimitMs = 10_000;

/** Loads one command file. A file that cannot be loaded is returned as a problem with one sentence; nothing is thrown. */
export async function loadEntry(found: FoundCommand, limitMs = defaultLimitMs): Promise<CatalogEntry | LoadProblem> {
  const { file, toolName, path: words } = found;
  const problem = (text: string): LoadProblem => ({ toolName, file, text });
  if (found.problem !== undefined) return problem(found.problem);
  if (found.command !== undefined) return { toolName, path: words, file, command: found.command };
  try {
    // The other commands are served although this file never finishes.
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

/** When Node cannot open a package.json for want of descriptors, its error has another code. */
function isShortOfDescriptors(error: unknown): boolean {
  return isOutOfDescriptors(error) || messageOf(error).endsWith("too many open files.");
}
