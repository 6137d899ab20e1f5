const contextLines = 3;
/** Beyond this a changed stretch is shown as removed and added as a whole. */
const maxCells = 4_000_000;

type Line = { readonly mark: " " | "-" | "+"; readonly text: string };

/** A unified diff, as `diff -u` writes it; empty when nothing differs. */
export function unifiedDiff(
  before: string,
  after: string,
  names: { readonly before: string; readonly after: string },
): string {
  const lines = compare(toLines(before), toLines(after));
  const hunks = toHunks(lines);
  return hunks.length === 0 ? "" : `--- ${names.before}\n+++ ${names.after}\n${hunks.join("")}`;
}

/** Lines with their ends, so that a last line without one differs. */
function toLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function compare(before: readonly string[], after: readonly string[]): Line[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const same = (lines: readonly string[]) => lines.map((text): Line => ({ mark: " ", text }));
  return [
    ...same(before.slice(0, head)),
    ...compareMiddle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...same(before.slice(before.length - tail)),
  ];
}

/** By the longest common subsequence. */
function compareMiddle(before: readonly string[], after: readonly string[]): Line[] {
  const removed = (text: string): Line => ({ mark: "-", text });
  const added = (text: string): Line => ({ mark: "+", text });
  if (before.length * after.length > maxCells) return [...before.map(removed), ...after.map(added)];
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let row = before.length - 1; row >= 0; row--)
    for (let column = after.length - 1; column >= 0; column--)
      lengths[row * width + column] =
        before[row] === after[column]
          ? (lengths[(row + 1) * width + column + 1] ?? 0) + 1
          : Math.max(lengths[(row + 1) * width + column] ?? 0, lengths[row * width + column + 1] ?? 0);
  const lines: Line[] = [];
  let row = 0;
  let column = 0;
  while (row < before.length || column < after.length) {
    const isSame = row < before.length && column < after.length && before[row] === after[column];
    const isRemoved =
      !isSame &&
      row < before.length &&
      (lengths[(row + 1) * width + column] ?? 0) >= (lengths[row * width + column + 1] ?? 0);
    if (isSame) {
      lines.push({ mark: " ", text: before[row++] ?? "" });
      column++;
    } else if (isRemoved || column === after.length) lines.push(removed(before[row++] ?? ""));
    else lines.push(added(after[column++] ?? ""));
  }
  return lines;
}

function toHunks(lines: readonly Line[]): string[] {
  const changed = lines.flatMap(({ mark }, index) => (mark === " " ? [] : [index]));
  const ranges: { from: number; to: number }[] = [];
  for (const index of changed) {
    const last = ranges.at(-1);
    if (last !== undefined && index - contextLines <= last.to) last.to = index + contextLines + 1;
    else ranges.push({ from: Math.max(0, index - contextLines), to: index + contextLines + 1 });
  }
  return ranges.map(({ from, to }) => toHunk(lines.slice(0, from), lines.slice(from, to)));
}

function toHunk(earlier: readonly Line[], lines: readonly Line[]): string {
  const count = (of: readonly Line[], without: Line["mark"]) => of.filter(({ mark }) => mark !== without).length;
  const side = (without: Line["mark"]) => {
    const length = count(lines, without);
    const start = count(earlier, without) + (length === 0 ? 0 : 1);
    return length === 1 ? `${start}` : `${start},${length}`;
  };
  const body = lines.map(({ mark, text }) =>
    text.endsWith("\n") ? `${mark}${text}` : `${mark}${text}\n\\ No newline at end of file\n`,
  );
  return `@@ -${side("+")} +${side("-")} @@\n${body.join("")}`;
}
