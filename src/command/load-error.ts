import { existsSync, readFileSync, realpathSync } from "node:fs";
import { isBuiltin } from "node:module";
import path from "node:path";
import { versions } from "node:process";
import { messageOf } from "../errors.ts";
import { placeOf, type SourcePlace } from "./place.ts";
import { closest } from "./suggest.ts";

/**
 * Returns one sentence for what loading a command file threw: the error's own words, file and line where they are
 * known, and what to do about a wrong version of Node, a module that cannot be loaded or a missing permission.
 */
export function describeLoadError(error: unknown, file: string): string {
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  const [text = ""] = messageOf(error).split("\n");
  const failed: FailedLoad = { error, code, file, text: text.replace(/\.$/, "") };
  const kind = error instanceof SyntaxError ? "SyntaxError: " : "";
  const cure = cureOf(failed);
  return `${kind}${wordsOf(failed)}${whereIn(file, placeOf(error))}${cure === undefined ? "" : `; ${cure}`}`;
}

interface FailedLoad {
  readonly error: unknown;
  readonly code: string | undefined;
  /** The command file. */
  readonly file: string;
  /** The first line of the message, without a full stop. */
  readonly text: string;
}

/** Node says in several lines that a native module was built for another version. */
function wordsOf({ code, text }: FailedLoad): string {
  if (code === "ERR_DLOPEN_FAILED") return `the native module ${nativeModuleOf(text)} cannot be loaded`;
  return text.replace(/ is a CommonJS module, which .*/, " is a CommonJS module");
}

function nativeModuleOf(text: string): string {
  return /^The module '(.+)'$/.exec(text)?.[1] ?? text;
}

function cureOf(failed: FailedLoad): string | undefined {
  return cureForPermission(failed) ?? cureForModule(failed) ?? cureForScope(failed) ?? cureForVersion(failed);
}

function cureForPermission({ error, code, file }: FailedLoad): string | undefined {
  if (code === "ERR_ACCESS_DENIED") return "start Node with that flag, or without --permission";
  if (code !== "EACCES" && code !== "EPERM") return undefined;
  // An error with a line is thrown by code of the file, for whatever it opens.
  if (placeOf(error) !== undefined) return "give this user the right to do that, or use another path";
  const { path: unreadable = file } = error as NodeJS.ErrnoException;
  return `let this user read it: chmod u+rX ${path.dirname(unreadable)} ${unreadable}`;
}

function cureForModule(failed: FailedLoad): string | undefined {
  const { code, file, text } = failed;
  if (code === "ERR_DLOPEN_FAILED")
    return `it was built for another version of Node than this one (${versions.node}) or for another system; run \`npm rebuild\`${inProject(file)}`;
  if (code === "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING")
    return "use a package that is compiled to JavaScript, or move the file out of node_modules";
  if (code === "ERR_IMPORT_ATTRIBUTE_MISSING") return 'write `with { type: "json" }` behind the import';
  if (code === "ERR_PACKAGE_PATH_NOT_EXPORTED")
    return "import what the package exports, or install a version that has it";
  return cureForMissing(failed) ?? cureForExport(text);
}

/** A package that is not installed, or a file that does not exist. */
function cureForMissing({ error, code, file, text }: FailedLoad): string | undefined {
  if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") return undefined;
  const name =
    /^Cannot find (?:package|module) '([^']+)'/.exec(text)?.[1] ??
    // Plug'n'Play of yarn.
    /^Your application tried to access ([^\s,]+), but it isn't declared/.exec(text)?.[1];
  if (name === undefined) return undefined;
  const { requireStack: [requiredBy] = [] } = error as { readonly requireStack?: readonly string[] };
  const importer = / imported from (.+)$/.exec(text)?.[1] ?? requiredBy ?? file;
  const isFile = name.startsWith(".") || path.isAbsolute(name);
  if (isFile) return cureForMissingFile(path.resolve(path.dirname(importer), name), importer);
  if (isTsconfigPath(name, path.dirname(importer)))
    return "`paths` of a tsconfig are for the type checker alone: import it by a relative path, or give it a name in the `imports` of package.json (#lib/…)";
  const packageName = name.split("/", name.startsWith("@") ? 2 : 1).join("/");
  return `install it: \`${installerOf(importer)} ${packageName}\`${inProject(importer)}`;
}

function cureForMissingFile(missing: string, importer: string): string {
  if (missing.includes(`${path.sep}node_modules${path.sep}`)) return "install the packages of the project again";
  const { dir, name, ext } = path.parse(missing);
  const stem = path.join(dir, /^\.[cm]?[jt]sx?$/.test(ext) ? name : name + ext);
  const other = [".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"].map((one) => stem + one).find((one) => existsSync(one));
  if (other === undefined) return "there is no such file: correct the import, or write the file";
  const way = path.relative(path.dirname(importer), other).replaceAll(path.sep, "/");
  return `import ${way.startsWith(".") ? way : `./${way}`}, as the file is called`;
}

/** `import { x }` of what the module does not export. */
function cureForExport(text: string): string | undefined {
  const [, named, byDefault] =
    /^The requested module '([^']+)' does not provide an export|^Named export '[^']+' not found\. The requested module '([^']+)'/.exec(
      text,
    ) ?? [];
  if (byDefault !== undefined) return `import its default export and take the name from that`;
  if (named === undefined) return undefined;
  const guess = named === "meanwhile" ? closest(/named '([^']+)'/.exec(text)?.[1] ?? "", exportedNames) : undefined;
  if (guess !== undefined) return `did you mean ${guess}? If that is a type, write \`import type\``;
  if (isBuiltin(named)) return `this is Node ${versions.node}: install a newer one, or do without it`;
  return "if that is a type, write `import type`; if the module is CommonJS, import its default export; else export it there";
}

/** What `src/index.ts` exports besides types. */
export const exportedNames: readonly string[] = [
  ...["defineCommand", "defineConfig", "createServer", "createCli", "durable", "checkConfig", "changeableBy"],
  ...["audio", "content", "image", "link", "resource", "text", "jsonSchema", "CommandError", "Declined"],
  ...["complete", "filterCompletions", "resolveContext", "resolveReference", "listProgress", "progressOf"],
];

/** Code for CommonJS in a file that also has `import` or `export`, and is therefore an ES module. */
function cureForScope({ text }: FailedLoad): string | undefined {
  const name = /^(\w+) is not defined in ES module scope/.exec(text)?.[1];
  if (name === "__dirname" || name === "__filename") return `write import.meta.${name.slice(2)}`;
  if (name === "require") return "write `import`, or make a `require` with createRequire of node:module";
  return name === undefined ? undefined : "write `export default`";
}

function cureForVersion({ code, file }: FailedLoad): string | undefined {
  if (code === "ERR_UNKNOWN_BUILTIN_MODULE")
    return `this is Node ${versions.node}: install a newer one, or do without that module`;
  const manifest = manifestOf(file);
  const wanted = manifest === undefined ? undefined : engineIn(manifest);
  if (wanted === undefined || !isOlderThan(wanted)) return undefined;
  return `${manifest} asks for Node ${wanted}, and this is Node ${versions.node}: install that`;
}

/** `engines.node` of a package.json. */
function engineIn(manifest: string): string | undefined {
  try {
    const { engines } = JSON.parse(readFileSync(manifest, "utf8")) as {
      readonly engines?: { readonly node?: unknown };
    };
    return typeof engines?.node === "string" ? engines.node : undefined;
  } catch {
    return undefined;
  }
}

/** True when this Node is older than every version that the range begins with. `<` and unknown words count as any. */
function isOlderThan(range: string): boolean {
  const own = numbersOf(versions.node);
  return range.split("||").every((part) => {
    const from = /^\s*(?:>=|\^|~|=|v)?\s*(\d+(?:\.\d+){0,2})/.exec(part)?.[1];
    if (from === undefined) return false;
    const wanted = numbersOf(from);
    const at = wanted.findIndex((number, index) => number !== own[index]);
    return at !== -1 && (own[at] ?? 0) < (wanted[at] ?? 0);
  });
}

function numbersOf(version: string): number[] {
  return version.split(".").map(Number);
}

/** The nearest package.json above a file. */
function manifestOf(file: string): string | undefined {
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    const manifest = path.join(folder, "package.json");
    if (existsSync(manifest)) return manifest;
    if (folder === path.dirname(folder)) return undefined;
  }
}

function inProject(file: string): string {
  const manifest = manifestOf(file);
  return manifest === undefined ? "" : ` in ${path.dirname(manifest)}`;
}

/** The command of the package manager whose lock file lies next to the package.json. */
function installerOf(file: string): string {
  const folder = path.dirname(manifestOf(file) ?? file);
  if (existsSync(path.join(folder, "pnpm-lock.yaml"))) return "pnpm add";
  return existsSync(path.join(folder, "yarn.lock")) ? "yarn add" : "npm install";
}

/** True for a name that only the `paths` of a tsconfig define: Node does not read them. */
function isTsconfigPath(name: string, folder: string): boolean {
  const file = path.join(folder, "tsconfig.json");
  const isNamed =
    existsSync(file) &&
    [`"${name}"`, `"${name.split("/")[0]}/*"`].some((key) => readFileSync(file, "utf8").includes(key));
  const parent = path.dirname(folder);
  return /^[@~]\//.test(name) || isNamed || (parent !== folder && isTsconfigPath(name, parent));
}

/** ` (line 3)` of the command file, or the relative path and line of a file that it imports. */
function whereIn(file: string, place: SourcePlace | undefined): string {
  if (place === undefined || path.basename(place.file) === ".pnp.cjs") return "";
  const way = path.relative(path.dirname(realpathSync(file)), place.file);
  return way === path.basename(file) ? ` (line ${place.line})` : ` (${way}:${place.line})`;
}
