import { keyPrefix } from "../../auth/api-key.ts";
import { builtInScopes } from "../../auth/rights.ts";
import { isToolPattern, toolPatternForm } from "../../auth/tool-pattern.ts";
import { UsageError } from "../../errors.ts";
import { clean } from "../terminal.ts";

/** The words of `keys …`, checked before a store is opened. Each throws a UsageError that names the cure. */

const maxNameChars = 64;
const maxDays = 3_650;
const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
/** RFC 6749, section 3.3, without the comma, which separates scopes here. */
const scopeForm = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]+$/;
const builtInPrefix = "meanwhile:";

export function readName(name: string): string {
  if (name.startsWith(keyPrefix))
    throw new UsageError(`A name must not begin with ${keyPrefix}, so that no key is taken for one; choose another.`);
  if (name === "" || name.length > maxNameChars || name !== name.trim() || name !== clean(name) || /\p{C}/u.test(name))
    throw new UsageError(
      `${quote(name)} is no name for a key; a name has 1 to ${maxNameChars} visible characters, and no space at its ends.`,
    );
  return name;
}

/** Default: `meanwhile:call`. */
export function readScopes(text: unknown): readonly string[] {
  if (typeof text !== "string") return [builtInScopes.call];
  const scopes = toList(text);
  const own = Object.values(builtInScopes);
  for (const scope of scopes) {
    if (!scopeForm.test(scope))
      throw new UsageError(
        `--scopes: ${quote(scope)} is no scope; give scopes without spaces, quotes and backslashes, separated by commas.`,
      );
    if (scope.startsWith(builtInPrefix) && !own.some((one) => one === scope))
      throw new UsageError(
        `--scopes: ${quote(scope)} is no scope; those that begin with ${builtInPrefix} are ${own.join(", ")}.`,
      );
  }
  return scopes;
}

/** Default: none, which is every tool. */
export function readPatterns(text: unknown): readonly string[] {
  if (typeof text !== "string") return [];
  const patterns = toList(text);
  const wrong = patterns.find((pattern) => !isToolPattern(pattern));
  if (wrong !== undefined) throw new UsageError(`--commands: ${quote(wrong)} is no pattern; give ${toolPatternForm}.`);
  return patterns;
}

/** Default: undefined, which is never. */
export function readExpiry(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  const ms = toMs(text);
  if (ms === undefined || ms === 0) throw noDuration("--expires", text);
  return ms;
}

/** Default: a day. */
export function readOverlap(text: unknown): number {
  if (typeof text !== "string") return unitMs.d as number;
  const ms = text === "0" ? 0 : toMs(text);
  if (ms === undefined) throw noDuration("--overlap", text);
  return ms;
}

function toMs(text: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,7})([mhdw])$/.exec(text) ?? [];
  const ms = count === undefined ? undefined : Number(count) * (unitMs[unit] as number);
  return ms !== undefined && ms <= maxDays * (unitMs.d as number) ? ms : undefined;
}

function noDuration(flag: string, text: string): UsageError {
  return new UsageError(
    `${flag}: ${quote(text)} is no duration; give minutes, hours, days or weeks, such as 30m, 12h, 90d or 52w, and at most ${maxDays}d.`,
  );
}

function toList(text: string): readonly string[] {
  return [...new Set(text.split(","))];
}

function quote(text: string): string {
  return `\`${clean(text)}\``;
}
