import { lstatSync } from "node:fs";
import path from "node:path";
import type { FileRule } from "./system.ts";

/**
 * Whose a file is on Windows and who may write it, as
 * https://learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format describes it.
 */

/**
 * Those that somebody else may have a say in: in the user's own profile only the user, administrators and the system
 * may write, unless the user has said otherwise.
 */
export function rulesToAsk(rules: readonly FileRule[], profile: string): FileRule[] {
  return rules.filter(
    ({ file }) => !isInside(profile, file) && lstatSync(file, { throwIfNoEntry: false }) !== undefined,
  );
}

function isInside(folder: string, file: string): boolean {
  const way = path.win32.relative(folder, file);
  return way !== "" && !way.startsWith("..") && !path.win32.isAbsolute(way);
}

/** Prints who we are and then, for each file, its owner and who may do what, as the system writes these. */
export function accessScript(rules: readonly FileRule[]): string {
  // PowerShell takes each of these for a quote, and two of them for one that is meant.
  const quoted = rules.map(({ file }) => `'${file.replace(/['\u2018-\u201b]/g, "$&$&")}'`);
  return [
    "[Security.Principal.WindowsIdentity]::GetCurrent().User.Value",
    `foreach ($file in ${quoted.join(",")}) { "=" + (Get-Acl -LiteralPath $file).Sddl }`,
  ].join("\n");
}

/** Says why the first of these must not be trusted, by what that has printed. */
export function readRefusal(rules: readonly FileRule[], printed: string): string | undefined {
  const [own = "", ...lines] = printed.split(/\r?\n/);
  const refusals = rules.map((rule, at) => refusalBy(lines[at]?.slice(1) ?? "", own, rule));
  return refusals.find((refusal) => refusal !== undefined);
}

/** The system, administrators, and whoever owns or has made it, in that place. */
const trusted: readonly string[] = ["SY", "BA", "S-1-5-18", "S-1-5-32-544", "CO", "OW", "S-1-3-0", "S-1-3-4"];

/** `LA` is the administrator that came with the machine, whose number is 500. */
const isTrusted = (who: string, own: string) =>
  who === own || trusted.includes(who) || (who === "LA" && own.endsWith("-500"));

function refusalBy(access: string, own: string, { file, mayBeShared = false, cure }: FileRule): string | undefined {
  const owner = /^O:(S-[\d-]+|[A-Z]{2})/.exec(access)?.[1];
  if (owner === undefined)
    return `Nobody says whose ${file} is (Get-Acl did not answer), so nothing in it was read; ${cure}.`;
  if (!isTrusted(owner, own))
    return `${file} belongs to another user (${owner}, you are ${own}), so nothing in it was read; ${cure}.`;
  const writer = mayBeShared ? undefined : writersOf(access).find((who) => !isTrusted(who, own));
  if (writer === undefined) return undefined;
  return `${file} may be written by others (${writer}), so nothing in it was read; if what is there is yours, take that right from them, or ${cure}.`;
}

const rights: Readonly<Record<string, number>> = {
  ...{ CC: 0x1, DC: 0x2, LC: 0x4, SW: 0x8, RP: 0x10, WP: 0x20, DT: 0x40, LO: 0x80, CR: 0x100 },
  ...{ SD: 0x10000, RC: 0x20000, WD: 0x40000, WO: 0x80000 },
  ...{ GA: 0x10000000, GX: 0x20000000, GW: 0x40000000, GR: 0x80000000 },
  ...{ FA: 0x1f01ff, FR: 0x120089, FW: 0x120116, FX: 0x1200a0 },
};
/** To write, append, or delete what is in it or itself; to change its owner or its rights; all. */
const writing = 0x2 | 0x4 | 0x40 | 0x10000 | 0x40000 | 0x80000 | 0x10000000 | 0x40000000;

/** Who may write. */
function writersOf(access: string): string[] {
  const list = /D:([A-Z_]*)((?:\([^()]*\))*)(.*)$/.exec(access);
  // What cannot be read, such as a condition, may let in anybody.
  if (list === null || list[1]?.includes("NO_ACCESS_CONTROL") || /^\(/.test(list[3] ?? "")) return ["everybody"];
  return [...(list[2] ?? "").matchAll(/\(([^()]*)\)/g)].flatMap(([, entry = ""]) => {
    const [type = "", flags = "", mask = "", , , who = ""] = entry.split(";");
    const isAllowing = ["A", "OA", "XA"].includes(type) && !pairsOf(flags).includes("IO");
    return isAllowing && (toMask(mask) & writing) !== 0 ? [who] : [];
  });
}

const pairsOf = (text: string): readonly string[] => text.match(/../g) ?? [];

function toMask(text: string): number {
  if (text.startsWith("0x")) return Number(text);
  return pairsOf(text).reduce((mask, name) => mask | (rights[name] ?? 0), 0);
}
