import { type StructuredPatchHunk, structuredPatch } from "diff";

/** Beyond so many lines the files are shown as removed and added as a whole. */
const maxChangedLines = 2000;

/** A unified diff, as `diff -u` writes it; empty when nothing differs. */
export function unifiedDiff(
  before: string,
  after: string,
  names: { readonly before: string; readonly after: string },
): string {
  const options = { context: 3, maxEditLength: maxChangedLines };
  const { hunks } = structuredPatch("", "", before, after, undefined, undefined, options) ?? replaceAll(before, after);
  return hunks.length === 0 ? "" : `--- ${names.before}\n+++ ${names.after}\n${hunks.map(toText).join("")}`;
}

function replaceAll(before: string, after: string): { hunks: StructuredPatchHunk[] } {
  const [removed] = structuredPatch("", "", before, "").hunks;
  const [added] = structuredPatch("", "", "", after).hunks;
  const lines = [...(removed?.lines ?? []), ...(added?.lines ?? [])];
  const [oldLines, newLines] = [removed?.oldLines ?? 0, added?.newLines ?? 0];
  return { hunks: [{ oldStart: 1, oldLines, newStart: 1, newLines, lines }] };
}

function toText({ oldStart, oldLines, newStart, newLines, lines }: StructuredPatchHunk): string {
  return `@@ -${toRange(oldStart, oldLines)} +${toRange(newStart, newLines)} @@\n${lines.join("\n")}\n`;
}

function toRange(start: number, length: number): string {
  if (length === 1) return `${start}`;
  return `${length === 0 ? start - 1 : start},${length}`;
}
