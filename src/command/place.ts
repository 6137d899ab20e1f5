import path from "node:path";
import { fileURLToPath } from "node:url";
import { ownFolder } from "../system/own-module.ts";

/** Where in an author's files something went wrong. */
export interface SourcePlace {
  readonly file: string;
  readonly line: number;
  readonly column?: number;
}

const headPattern = /^((?:file:\/\/)?\/[^:]*):(\d+)$/;
const framePattern = /^\s+at (?:.* \()?((?:file:\/\/)?\/[^:]*):(\d+):(\d+)\)?$/;
const maxLines = 100;

/**
 * The first place in the stack that is no package's, not Node's and not ours. A syntax error has it on its first line.
 */
export function placeOf(error: unknown): SourcePlace | undefined {
  if (!(error instanceof Error)) return undefined;
  const lines = stackOf(error).split("\n");
  for (const [at, text] of lines.slice(0, maxLines).entries()) {
    const [, where, line, column] = (at === 0 ? headPattern : framePattern).exec(text) ?? [];
    if (where === undefined) continue;
    const file = toFile(where);
    if (file.includes("/node_modules/") || file.startsWith(`${ownFolder()}/`)) continue;
    return { file, line: Number(line), ...(column !== undefined && { column: Number(column) }) };
  }
  return undefined;
}

/** `commands/report/build.ts:12:5`, from the working folder where the file lies below it. */
export function describePlace({ file, line, column }: SourcePlace): string {
  const below = path.relative("", file);
  const shown = below.startsWith("..") || path.isAbsolute(below) ? file : below;
  return [shown, line, ...(column === undefined ? [] : [column])].join(":");
}

/** An author's error may have a stack of its own making. */
function stackOf(error: Error): string {
  try {
    return String(error.stack ?? "");
  } catch {
    return "";
  }
}

function toFile(where: string): string {
  const [plain = ""] = where.split("?");
  if (!plain.startsWith("file://")) return plain;
  try {
    return fileURLToPath(plain);
  } catch {
    return plain;
  }
}
