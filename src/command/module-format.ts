import { readFileSync } from "node:fs";
import * as nodeModule from "node:module";
import path from "node:path";
import process from "node:process";
import { compileFunction } from "node:vm";

/** A format that a resolve hook may give to Node. */
type ModuleFormat = "module" | "module-typescript";

/**
 * Returns the format of a `.ts` or `.js` file that has ES module syntax and that Node would load as CommonJS, because
 * its package.json has `"type": "commonjs"`. Also returns it for a file without a `type`: Node detects the syntax
 * itself there, but prints a warning. Returns undefined for every other file. Throws if the file cannot be read.
 *
 * @param format what Node resolved for the file; undefined or null where Node decides later.
 */
export function findModuleFormat(file: string, format: string | null | undefined): ModuleFormat | undefined {
  if (format?.startsWith("module") === true) return undefined;
  const extension = path.extname(file);
  if (extension === ".js") return isCommonJs(readFileSync(file, "utf8")) ? undefined : "module";
  // Without type stripping (--no-strip-types) Node does not know the format.
  if (extension !== ".ts" || process.features.typescript === false) return undefined;
  return isCommonJs(readFileSync(file, "utf8"), stripTypes) ? undefined : "module-typescript";
}

const commonJsVariables = ["exports", "require", "module", "__filename", "__dirname"];

/**
 * True for code that compiles as CommonJS. Code with `import` or `export` does not. Code with a syntax error does not
 * either: Node reports the error for both formats.
 */
function isCommonJs(code: string, toJavaScript = (text: string) => text): boolean {
  try {
    compileFunction(toJavaScript(code), commonJsVariables);
    return true;
  } catch {
    return false;
  }
}

/** Node 24 and 26 print an ExperimentalWarning at the first call. */
function stripTypes(code: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return nodeModule.stripTypeScriptTypes(code);
  } finally {
    process.emitWarning = emitWarning;
  }
}
