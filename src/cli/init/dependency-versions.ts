import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { packageFolder } from "../../paths.ts";
import { packageVersion } from "../../project/project.ts";

/**
 * The other packages of a new project, in the versions that this one was built and tested with. The published
 * package.json does not name the tools.
 */
export const dependencyVersions = { "@types/node": "24.19.2", typescript: "7.0.2", zod: "4.6.7" } as const;

/** The Node versions that a new project runs on. */
export const oldestNode = ">=22.18";

/** Set to true with the first release on npm. */
const isOnNpm: boolean = false;

/**
 * Returns the version of Meanwhile that a new project depends on. Before the first release this is the path of the
 * installed copy, because a version cannot be installed from npm. Plug'n'Play of yarn keeps that copy in an archive,
 * which no package manager installs: there it is what the project around `cwd` depends on.
 */
export function meanwhileSpecifier(cwd: string, installed = packageFolder()): string {
  if (isOnNpm) return packageVersion();
  const isInArchive = installed.split(path.sep).some((name) => name.endsWith(".zip"));
  return (isInArchive ? findSpecifier(cwd) : undefined) ?? toFileSpecifier(installed);
}

/** The dependency on Meanwhile in the nearest package.json that has one; a path in it is made absolute. */
function findSpecifier(folder: string): string | undefined {
  const file = path.join(folder, "package.json");
  const { dependencies, devDependencies } = (existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {}) as {
    readonly [key in "dependencies" | "devDependencies"]?: Readonly<Record<string, string>>;
  };
  const found = dependencies?.meanwhile ?? devDependencies?.meanwhile;
  if (found === undefined) return path.dirname(folder) === folder ? undefined : findSpecifier(path.dirname(folder));
  const place = found.replace(/^file:/, "").replace(/::.*$/, "");
  return /^[./]|^[A-Za-z]:/.test(place) ? toFileSpecifier(path.resolve(folder, place)) : found;
}

function toFileSpecifier(place: string): string {
  return `file:${place.split(path.sep).join("/")}`;
}
