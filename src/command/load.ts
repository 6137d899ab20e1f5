import { existsSync, realpathSync } from "node:fs";
import * as nodeModule from "node:module";
import path from "node:path";
import { versions } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

const { registerHooks } = nodeModule;
// An import of what a Node does not have would fail before a word of ours is said.
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

/** Our own modules are loaded once, also where this package is a checkout and not in node_modules. */
const ownFolder = new URL(".", import.meta.url).href;

/** Packages that a command file may import without having them installed: it then gets ours. */
const lent = ["meanwhile", "zod", "@modelcontextprotocol/server"];

/**
 * Our own zod, and the one file that it is in the built package: whoever would get the first gets the second, which is
 * the same and loads several times faster.
 */
const ownZod = { url: "", oneFile: new URL("./zod.js", import.meta.url) };

/** Files that authors' modules were seen to import, wherever they lie. */
const imported = new Set<string>();

/** The files outside these folders that their modules import: a change of one is a change of theirs. */
export function importsOutside(folders: readonly string[]): string[] {
  const roots = folders.filter((folder) => existsSync(folder)).map((folder) => `${realpathSync(folder)}${path.sep}`);
  return [...imported].filter((file) => !roots.some((root) => file.startsWith(root)));
}

/** Imports a module of an author. Rejects with what the file did wrong. */
export async function loadModule(file: string): Promise<Record<string, unknown>> {
  installHooks();
  const url = pathToFileURL(realpathSync(file)).href;
  try {
    return (await import(url)) as Record<string, unknown>;
  } catch (error) {
    if (!needsTranspiler(error, file)) throw error;
    return await transpile(file);
  }
}

/** Marks what is imported as an author's file would import it. */
const asOf = "meanwhile-as-of:";

/** Imports a package as a file of the author's would: its own, where it has one. */
export async function loadAsOf(file: string, specifier: string): Promise<unknown> {
  installHooks();
  return await import(`${asOf}${specifier}|${pathToFileURL(file).href}`);
}

/** From now on, files below these folders are read again when they are loaded. */
export function forgetModules(folders: readonly string[]): void {
  // Modules are known by their real path, also when the folder is reached through a link.
  for (const folder of folders) if (existsSync(folder)) reloadRoots.add(`${pathToFileURL(realpathSync(folder)).href}/`);
  generation += 1;
}

function installHooks(): void {
  if (hooked) return;
  hooked = true;
  if (existsSync(ownZod.oneFile)) ownZod.url = import.meta.resolve("zod");
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier.startsWith(asOf)) {
        const [name = "", parentURL] = specifier.slice(asOf.length).split("|");
        return resolveOrLend(name, { ...context, parentURL }, next);
      }
      const resolved = resolveOrLend(specifier, context, next);
      if (resolved.url === ownZod.url) return { ...resolved, url: ownZod.oneFile.href };
      if (isAuthors(resolved.url) && context.parentURL !== undefined && isAuthors(context.parentURL))
        imported.add(fileURLToPath(plainUrl(resolved.url)));
      if (generation === 0 || !isReloadable(resolved.url, context.parentURL)) return resolved;
      return { ...resolved, url: `${resolved.url}?reload=${generation}` };
    },
  });
}

type Resolve = Parameters<NonNullable<Parameters<typeof registerHooks>[0]["resolve"]>>;

function resolveOrLend(specifier: string, context: Resolve[1], next: Resolve[2]): ReturnType<Resolve[2]> {
  try {
    return next(specifier, context);
  } catch (error) {
    const isLent = lent.some((name) => specifier === name || specifier.startsWith(`${name}/`));
    if (!isLent || (error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    return next(specifier, { ...context, parentURL: import.meta.url });
  }
}

function isAuthors(url: string): boolean {
  return url.startsWith("file:") && !url.includes("/node_modules/") && !url.startsWith(ownFolder);
}

function plainUrl(url: string): string {
  return url.replace(/[?#].*$/, "");
}

/** Command files, and what they import from the project around them. */
function isReloadable(url: string, parent: string | undefined): boolean {
  if (!isAuthors(url) || url.includes("?")) return false;
  if (parent?.includes("?reload=") === true) return true;
  for (const root of reloadRoots) if (url.startsWith(root)) return true;
  return false;
}

/** Enums, parameter properties and imports without an extension are not for Node alone. */
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
  const { createJiti } = await import("jiti");
  const own = (name: string) => fileURLToPath(import.meta.resolve(name));
  const jiti = createJiti(pathToFileURL(file).href, {
    moduleCache: false,
    fsCache: false,
    interopDefault: false,
    alias: { meanwhile: own("meanwhile"), zod: own("zod") },
  });
  return await jiti.import<Record<string, unknown>>(file);
}
