import { existsSync, readFileSync, realpathSync } from "node:fs";
import * as nodeModule from "node:module";
import path from "node:path";
import { versions } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { importNow, ownFolder, ownUrl, resolveOwn } from "../system/own-module.ts";
import { findModuleFormat } from "./module-format.ts";

const { registerHooks } = nodeModule;
// A named import that this Node does not have would fail before this sentence is printed.
if (registerHooks === undefined)
  throw new Error(`Meanwhile needs Node 22.18 or newer, and this is Node ${versions.node}; install a newer one.`);

/**
 * Loads authors' modules: TypeScript as it is, again after a change, and from folders without node_modules.
 *
 * A module is cached for the life of the process under its URL. To load a changed file again, and the files
 * it imports from the same folders, their URLs get a `?reload=n` that grows with every reload.
 */
const reloadRoots = new Set<string>();
let generation = 0;
let hooked = false;

/** Packages that a command file may import without having installed them: it gets the copies of this package. */
const lent = ["meanwhile", "zod", "@modelcontextprotocol/server"];

/**
 * Our own zod (`url`) and the bundled copy of it in the built package (`oneFile`). An import that resolves to `url` gets
 * `oneFile`, which has the same exports and loads several times faster.
 */
const ownZod = { url: "", oneFile: "" };
/** The folder of our own modules, as an address. They are loaded once, also where this package is a checkout. */
let ownModules = "";

/** Files that authors' modules import, in any folder. */
const imported = new Set<string>();

/** URLs, without a query, of the modules that `loadModule` was called for and of the files that they import. */
const loadedModules = new Set<string>();
/** What `findModuleFormat` returned, by URL. */
const knownFormats = new Map<string, ReturnType<typeof findModuleFormat>>();

/** Returns the files outside these folders that their modules import: a change of such a file reloads the folders. */
export function importsOutside(folders: readonly string[]): string[] {
  const roots = folders.filter((folder) => existsSync(folder)).map((folder) => `${realpathSync(folder)}${path.sep}`);
  return [...imported].filter((file) => !roots.some((root) => file.startsWith(root)));
}

/**
 * Imports a module of an author. TypeScript and ES modules load whatever `type` the package.json has. Rejects with the
 * error of the file.
 */
export async function loadModule(file: string): Promise<Record<string, unknown>> {
  installHooks();
  const url = pathToFileURL(realpathSync(file)).href;
  loadedModules.add(url);
  try {
    return (await importNow(url)) as Record<string, unknown>;
  } catch (error) {
    if (!needsTranspiler(error, file)) throw error;
    return await transpile(file);
  }
}

/** Prefix of a specifier that is resolved as if an author's file imported it. */
const asOf = "meanwhile-as-of:";

/** Imports a package as the author's `file` would import it: the project's own copy if it has one. */
export async function loadAsOf(file: string, specifier: string): Promise<unknown> {
  installHooks();
  return await importNow(`${asOf}${specifier}|${pathToFileURL(file).href}`);
}

/** Makes the next load of a file below these folders read the file again. */
export function forgetModules(folders: readonly string[]): void {
  // Node caches modules by their real path, also when the folder is a symbolic link.
  for (const folder of folders) if (existsSync(folder)) reloadRoots.add(`${pathToFileURL(realpathSync(folder)).href}/`);
  generation += 1;
}

function installHooks(): void {
  if (hooked) return;
  hooked = true;
  ownModules = `${pathToFileURL(ownFolder()).href}/`;
  const oneFile = path.join(ownFolder(), "zod.js");
  if (existsSync(oneFile)) Object.assign(ownZod, { url: resolveOwn("zod"), oneFile: pathToFileURL(oneFile).href });
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier.startsWith(asOf)) {
        const [name = "", parentURL] = specifier.slice(asOf.length).split("|");
        return resolveOrLend(name, { ...context, parentURL }, next);
      }
      const resolved = resolveOrLend(specifier, context, next);
      if (resolved.url === ownZod.url) return { ...resolved, url: ownZod.oneFile };
      if (isAuthors(resolved.url) && context.parentURL !== undefined && isAuthors(context.parentURL))
        imported.add(fileURLToPath(plainUrl(resolved.url)));
      const isReloaded = generation > 0 && isReloadable(resolved.url, context.parentURL);
      const url = isReloaded ? `${resolved.url}?reload=${generation}` : resolved.url;
      const format = isLoadedHere(url, context.parentURL) ? formatOf(url, resolved.format) : undefined;
      return { ...resolved, url, ...(format !== undefined && { format }) };
    },
    ...(versions.pnp !== undefined && { load: loadWithFormat }),
  });
}

/** For Plug'n'Play of yarn, whose loader ignores the format of a resolve hook. */
const loadWithFormat: NonNullable<Parameters<typeof registerHooks>[0]["load"]> = (url, context, next) => {
  const format = knownFormats.get(url);
  if (format === undefined) return next(url, context);
  return { format, source: readFileSync(fileURLToPath(plainUrl(url)), "utf8"), shortCircuit: true };
};

/** True for a module of `loadModule` and for every author's file that such a module imports. */
function isLoadedHere(url: string, parent: string | undefined): boolean {
  const isImported = parent !== undefined && loadedModules.has(plainUrl(parent)) && isAuthors(url);
  if (isImported) loadedModules.add(plainUrl(url));
  return isImported || loadedModules.has(plainUrl(url));
}

/** Reads the file once for each URL: a module may be imported from many places. */
function formatOf(url: string, resolved: string | null | undefined): ReturnType<typeof findModuleFormat> {
  if (!knownFormats.has(url)) knownFormats.set(url, findModuleFormat(fileURLToPath(plainUrl(url)), resolved));
  return knownFormats.get(url);
}

type Resolve = Parameters<NonNullable<Parameters<typeof registerHooks>[0]["resolve"]>>;

function resolveOrLend(specifier: string, context: Resolve[1], next: Resolve[2]): ReturnType<Resolve[2]> {
  try {
    return next(specifier, context);
  } catch (error) {
    const isLent = lent.some((name) => specifier === name || specifier.startsWith(`${name}/`));
    if (!isLent || !isNotFound(error)) throw error;
    return next(specifier, { ...context, parentURL: ownUrl() });
  }
}

/** True for the errors of `import` and of `require`; Plug'n'Play of yarn gives the second for both. */
function isNotFound(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
}

function isAuthors(url: string): boolean {
  return url.startsWith("file:") && !url.includes("/node_modules/") && !url.startsWith(ownModules);
}

function plainUrl(url: string): string {
  return url.replace(/[?#].*$/, "");
}

/** True for files below the folders of `forgetModules`, and for files of the project that such files import. */
function isReloadable(url: string, parent: string | undefined): boolean {
  if (!isAuthors(url) || url.includes("?")) return false;
  if (parent?.includes("?reload=") === true) return true;
  for (const root of reloadRoots) if (url.startsWith(root)) return true;
  return false;
}

/** True for errors of what Node cannot load and jiti can: enums, parameter properties, imports without an extension. */
function needsTranspiler(error: unknown, file: string): boolean {
  if (!/\.[mc]?ts$/.test(file)) return false;
  const { code, message } = error as NodeJS.ErrnoException;
  if (
    code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX" ||
    code === "ERR_UNSUPPORTED_DIR_IMPORT" ||
    code === "ERR_UNKNOWN_FILE_EXTENSION"
  )
    return true;
  if (code !== "ERR_MODULE_NOT_FOUND") return false;
  const missing = /Cannot find module '([^']+)'/.exec(message)?.[1];
  return missing !== undefined && path.extname(missing) === "";
}

async function transpile(file: string): Promise<Record<string, unknown>> {
  const { createJiti } = (await importNow("jiti")) as typeof import("jiti");
  const own = (name: string) => fileURLToPath(resolveOwn(name));
  const jiti = createJiti(pathToFileURL(file).href, {
    moduleCache: false,
    fsCache: false,
    interopDefault: false,
    alias: { meanwhile: own("meanwhile"), zod: own("zod") },
  });
  return await jiti.import<Record<string, unknown>>(file);
}
