/** The lines that differ between two texts: from the first such line to the last. */
export interface Hunk {
  readonly before: string;
  readonly after: string;
}

/** What is different, in whole lines. */
export function toHunk(before: string, after: string): Hunk {
  const [old, made] = [linesOf(before), linesOf(after)];
  const most = Math.min(old.length, made.length);
  let head = 0;
  while (head < most && old[head] === made[head]) head++;
  let tail = 0;
  while (tail < most - head && old.at(-1 - tail) === made.at(-1 - tail)) tail++;
  const middle = (lines: readonly string[]) => lines.slice(head, lines.length - tail).join("");
  return { before: middle(old), after: middle(made) };
}

function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/);
}

/** The texts that come of it when the change is taken back at each place where it can be seen. */
export function* undoHunk(text: string, { before, after }: Hunk): Generator<string> {
  if (after === "") return;
  for (let at = text.indexOf(after); at >= 0; at = text.indexOf(after, at + 1))
    yield text.slice(0, at) + before + text.slice(at + after.length);
}
