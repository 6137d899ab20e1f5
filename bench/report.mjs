// What the table says: its rows, the goals, and how numbers are put together.

const speedGoals = { ofSdk: 0.95, aheadOfFastmcp: true };

/** The peer is not asked the same here: SDK v2 has no tasks, so its cell is its plain tools/call. */
const taskGet = "tasks/get over HTTP (2026-07-28) at 10,000 live tasks, beside tools/call";

/** `better` says which way is good; a row without goals is there to be read, not to be met. */
export const rows = [
  { id: "stdio-1", section: "stdio", title: "stdio, one call at a time", unit: "calls/s", better: "more", goals: speedGoals },
  { id: "stdio-64", section: "stdio", title: "stdio, 64 in flight", unit: "calls/s", better: "more", goals: speedGoals },
  { id: "stdio-cpu", section: "stdio", title: "stdio, server CPU a call (64 in flight)", unit: "µs", better: "less" },
  { id: "http-1", section: "http", title: "HTTP 2026-07-28, one call at a time", unit: "calls/s", better: "more", goals: speedGoals },
  { id: "http-32", section: "http", title: "HTTP 2026-07-28, 32 in flight", unit: "calls/s", better: "more", goals: speedGoals },
  { id: "http-cpu", section: "http", title: "HTTP 2026-07-28, server CPU a call (32 in flight)", unit: "µs", better: "less" },
  { id: "task-get-1", section: "task-get", title: `${taskGet}, one at a time`, unit: "calls/s", better: "more", goals: { ofSdk: 1 } },
  { id: "task-get-64", section: "task-get", title: `${taskGet}, 64 in flight`, unit: "calls/s", better: "more", goals: { ofSdk: 1 } },
  { id: "task-get-cpu", section: "task-get", title: `${taskGet}, server CPU a call (64 in flight)`, unit: "µs", better: "less" },
  { id: "sessions-1", section: "sessions", title: "HTTP 2025-11-25 session, one call at a time", unit: "calls/s", better: "more", goals: speedGoals },
  { id: "sessions-32", section: "sessions", title: "HTTP 2025-11-25 session, 32 in flight", unit: "calls/s", better: "more", goals: speedGoals },
  { id: "sessions-cpu", section: "sessions", title: "HTTP 2025-11-25 session, server CPU a call (32 in flight)", unit: "µs", better: "less" },
  { id: "start", section: "start", title: "start to first answer", unit: "ms", better: "less", goals: { ofSdk: 1 } },
  { id: "start-cached", section: "start", title: "start to first answer, NODE_COMPILE_CACHE for all", unit: "ms", better: "less" },
  { id: "memory", section: "stdio", title: "memory after the stdio calls", unit: "MiB", better: "less" },
  { id: "help", section: "help", title: "`meanwhile --help`", unit: "ms", better: "less", goals: { timesNode: 4 } },
  { id: "command-help", section: "help", title: "`meanwhile echo text --help`", unit: "ms", better: "less", goals: { timesNode: 6 } },
];

export const sections = [...new Set(rows.map((row) => row.section))];

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

  value(row, server) {
    const values = this.#values.get(`${row} ${server}`);
    return values && median(values);
  }

  /** Each round's own ratio: what slows a whole round down does not move it. */
  ratios(row, server, base, baseRow = row) {
    const values = this.#values.get(`${row} ${server}`);
    const bases = this.#values.get(`${baseRow} ${base}`);
    return values && bases && values.map((value, round) => value / bases[round]);
  }

  ratio(...of) {
    const ratios = this.ratios(...of);
    return ratios && median(ratios);
  }
}

const columns = ["SDK v1", "SDK v2", "fastmcp", "Meanwhile"];

/** The table's lines, cell by cell, and the goals that were missed. */
export function toTable(results) {
  const head = ["", "unit", ...columns, "÷ SDK v2", "÷ fastmcp", "goals"];
  const measured = rows.filter((row) => columns.some((name) => results.value(row.id, name) !== undefined));
  const verdicts = measured.map((row) => ({ row, goals: judge(row, results) }));
  const lines = verdicts.map(({ row, goals }) => [
    row.title,
    row.unit,
    ...columns.map((name) => formatValue(results.value(row.id, name))),
    formatRatios(results.ratios(row.id, "Meanwhile", "SDK v2"), row.better),
    formatRatios(results.ratios(row.id, "Meanwhile", "fastmcp"), row.better),
    goals.map((goal) => `${goal.text}: ${goal.isMet ? "met" : "MISSED"}`).join("; "),
  ]);
  const missed = verdicts.flatMap(({ row, goals }) => goals.filter((goal) => !goal.isMet).map((goal) => `${row.title}: ${goal.text}`));
  return { head, lines, missed };
}

function judge(row, results) {
  const { ofSdk, aheadOfFastmcp, timesNode } = row.goals ?? {};
  const toSdk = results.ratio(row.id, "Meanwhile", "SDK v2");
  const toFastmcp = results.ratio(row.id, "Meanwhile", "fastmcp");
  const goals = [];
  if (ofSdk !== undefined && toSdk !== undefined) {
    const isFaster = row.better === "more";
    goals.push({ text: isFaster ? `≥ ${ofSdk} of SDK v2` : "no slower than SDK v2", isMet: isFaster ? toSdk >= ofSdk : toSdk <= ofSdk });
  }
  if (aheadOfFastmcp && toFastmcp !== undefined) goals.push({ text: "ahead of fastmcp", isMet: toFastmcp > 1 });
  if (timesNode !== undefined) {
    const times = results.ratio(row.id, "Meanwhile", "Meanwhile", "node");
    const bare = formatValue(results.value("node", "Meanwhile"));
    goals.push({ text: `≤ ${timesNode} × \`node -e 0\` (${bare} ms), is ${formatRatio(times, row.better)}`, isMet: times <= timesNode });
  }
  return goals;
}

/** Rounded to the worse side: a goal that is missed by a hair must not look met. */
function formatRatio(ratio, better) {
  return ((better === "more" ? Math.floor(ratio * 100) : Math.ceil(ratio * 100)) / 100).toFixed(2);
}

/** The median, and between which bounds the rounds lay. */
function formatRatios(ratios, better) {
  if (ratios === undefined) return "–";
  const middle = formatRatio(median(ratios), better);
  return ratios.length === 1 ? middle : `${middle} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`;
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
  const line = (cells) => cells.map((cell, at) => (isNumber(at) ? cell.padStart(widths[at]) : cell.padEnd(widths[at]))).join("  ");
  return [line(head), widths.map((width) => "─".repeat(width)).join("  "), ...lines.map(line)].map((text) => text.trimEnd()).join("\n");
}
