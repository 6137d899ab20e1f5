import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/**
 * Where this package's code is: in the package's own files, or in the output of a bundler. Nothing here runs when a
 * module is loaded, because a bundle of CommonJS has no `import.meta`, and has no files of the package beside it.
 */

/** Returns the address of the file that this code is in. Of a bundle it may be the address at the time of the build. */
export function ownUrl(): string {
  const url: string | undefined = import.meta.url;
  if (url !== undefined) return url;
  return pathToFileURL(typeof __filename === "string" ? __filename : startedFile()).href;
}

/** Returns the folder of this package's code: `dist`, `src`, or that of the bundle. */
export function ownFolder(): string {
  const folder = path.dirname(fileURLToPath(ownUrl()));
  return isSource() ? path.dirname(folder) : folder;
}

function isSource(): boolean {
  return ownUrl().endsWith("/own-module.ts");
}

/** The file that Node was started with; empty where there is none, as with `node -e`. */
function startedFile(): string {
  const file = process.argv[1] ?? "";
  return path.isAbsolute(file) ? file : "";
}

/** Where files and packages are looked for: never from the working folder, which may be anybody's. */
function ownPlaces(): string[] {
  const started = startedFile();
  return [ownUrl(), ...(started === "" ? [] : [pathToFileURL(started).href])].filter((url) => url.startsWith("file:"));
}

/**
 * Requires a package when it is first needed. It is looked for from this code and, after bundling, from the file that
 * Node was started with. Throws MODULE_NOT_FOUND where neither finds it.
 */
export function requireOwn(name: string): unknown {
  let missing: unknown = Object.assign(new Error(`Cannot find module '${name}'`), { code: "MODULE_NOT_FOUND" });
  for (const place of ownPlaces()) {
    try {
      return requireFrom(place)(name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
      missing = error;
    }
  }
  throw missing;
}

/** Bundlers replace a `createRequire` that is imported, and then do not find the package at run time. */
function requireFrom(url: string): NodeJS.Require {
  return process.getBuiltinModule("node:module").createRequire(url);
}

/**
 * Imports a module by a name that is known only at run time, or a package that is installed only for the feature that
 * needs it. The comments keep bundlers from resolving the name, so that neither a build nor a start needs the package.
 */
export async function importNow(name: string): Promise<unknown> {
  return await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ name);
}

/** Resolves a module as this code would import it. Throws where it is not there. */
export function resolveOwn(name: string): string {
  // Bundlers know no other use of it: in a bundle it is undefined.
  const { resolve } = import.meta as { readonly resolve?: (name: string) => string };
  return resolve === undefined ? pathToFileURL(requireFrom(ownUrl()).resolve(name)).href : resolve(name);
}

/**
 * Returns a file of this package by its path in `dist` and in `src`. After bundling it is looked for beside the bundle,
 * beside the file that Node was started with, and in an installed package of this name. Undefined where none has it.
 */
export function findOwnFile({ built, source }: { readonly built: string; readonly source: string }): URL | undefined {
  if (isSource()) return pathToFileURL(path.join(ownFolder(), source));
  const places = ownPlaces();
  const beside = places.map((place) => new URL(built, place)).find((file) => existsSync(file));
  // Only where none is there: resolving a package reads all folders up to the root.
  return (
    beside ?? places.map((place) => inPackage(place, built)).find((file) => file !== undefined && existsSync(file))
  );
}

function inPackage(place: string, built: string): URL | undefined {
  try {
    return new URL(`dist/${built}`, pathToFileURL(requireFrom(place).resolve("meanwhile/package.json")));
  } catch {
    return undefined; // Not installed there.
  }
}
