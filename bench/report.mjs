// How numbers are put together and printed.
import os from "node:os";
import process from "node:process";

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function createRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What every round measured: row and server → one value a round. */
export class Results {
  #values = new Map();

  add(row, server, value) {
    if (!Number.isFinite(value)) return;
    const key = `${row} ${server}`;
    this.#values.set(key, [...(this.#values.get(key) ?? []), value]);
  }

  values(row, server) {
    return this.#values.get(`${row} ${server}`);
  }

  value(row, server) {
    const values = this.values(row, server);
    return values && median(values);
  }

  /** Each round's own ratio: what slows a whole round down does not move it. */
  ratios(row, server, base, baseRow = row) {
    const values = this.values(row, server);
    const bases = this.values(baseRow, base);
    return values && bases && values.map((value, round) => value / bases[round]);
  }

  ratio(...of) {
    const ratios = this.ratios(...of);
    return ratios && median(ratios);
  }
}

/**
 * The lines of the rows that were measured, cell by cell, and the goals that were missed. The last column is the one
 * that is judged.
 */
export function toTable({ rows, columns }, results) {
  const isMeasured = (row, name) => results.value(row.id, name) !== undefined;
  const subject = columns.at(-1);
  const measured = rows.filter((row) => isMeasured(row, subject));
  const shown = columns.filter((name) => measured.some((row) => isMeasured(row, name)));
  const verdicts = measured.map((row) => ({ row, goals: judge(row, subject, results) }));
  const lines = verdicts.map(({ row, goals }) => [
    row.title,
    row.unit,
    ...shown.map((name) => formatValue(results.value(row.id, name))),
    goals.map(({ text }) => text).join("; "),
  ]);
  const missed = verdicts.flatMap(({ row, goals }) =>
    goals.filter(({ isMet }) => isMet === false).map(({ bound }) => `${row.title}: ${bound}`),
  );
  return { head: ["", "unit", ...shown, "goals"], lines, missed };
}

/** What can be said of a row's goals: those whose other side was measured too. */
function judge(row, subject, results) {
  return (row.goals ?? []).flatMap((goal) => {
    const values =
      goal.of === undefined ? results.values(row.id, subject) : results.ratios(row.id, subject, goal.of, goal.row);
    if (values === undefined) return [];
    const { least, most, moonshot, name = goal.of } = goal;
    const other = goal.of === undefined ? row.unit : `× ${name}`;
    const is = goal.of === undefined ? "" : `${formatRatios(values, most === undefined ? Math.floor : Math.ceil)} `;
    if (least === undefined && most === undefined) return [{ text: `${is}${other}` }];
    const value = median(values);
    const bound = `${least === undefined ? `≤ ${most}` : `≥ ${least}`} ${other}`;
    const isMet = least === undefined ? value <= most : value >= least;
    const further = moonshot === undefined ? "" : ` (moonshot ${moonshot}: ${value >= moonshot ? "met" : "not yet"})`;
    return [{ bound, isMet, text: `${bound}: ${is}${isMet ? "met" : "MISSED"}${further}` }];
  });
}

/**
 * The median, rounded to the worse side so that a goal that is missed by a hair does not look met, and between which
 * bounds the rounds lay.
 */
function formatRatios(ratios, round) {
  const middle = (round(median(ratios) * 100) / 100).toFixed(2);
  return ratios.length === 1
    ? middle
    : `${middle} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`;
}

/** Prints a table, under which conditions it was measured, and what was missed. */
export function printTable(table, { markdown, rounds, startedAt }) {
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const load = os.loadavg()[0].toFixed(1);
  const medians = rounds === 1 ? "one round" : `median of ${rounds} rounds`;
  const about = `Node ${process.versions.node}, ${os.availableParallelism()} cores, ${os.type()}, load ${load}, ${medians}, ${seconds} s; ratios are taken within each round, with the lowest and highest.`;
  const verdict = table.missed.length === 0 ? "Every goal is met." : `Missed: ${table.missed.join("; ")}.`;
  process.stdout.write(`${markdown ? toMarkdown(table) : toText(table)}\n\n${about}\n${verdict}\n\n`);
}

const formatValue = (value) => (value === undefined ? "–" : Math.round(value).toLocaleString("en-US"));

export function toMarkdown({ head, lines }) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, at) => (at >= 2 && at < head.length - 1 ? "---:" : "---"));
  return [line(head), line(rule), ...lines.map(line)].join("\n");
}

export function toText({ head, lines }) {
  const all = [head, ...lines];
  const widths = head.map((_, at) => Math.max(...all.map((cells) => cells[at].length)));
  const isNumber = (at) => at >= 2 && at < head.length - 1;
  const line = (cells) =>
    cells.map((cell, at) => (isNumber(at) ? cell.padStart(widths[at]) : cell.padEnd(widths[at]))).join("  ");
  return [line(head), widths.map((width) => "─".repeat(width)).join("  "), ...lines.map(line)]
    .map((text) => text.trimEnd())
    .join("\n");
}
