// node bench/pack-search.mjs [--quick] [--markdown]: what vault index costs for notes with known links, and what ingest
// search costs over many chunks. A missed goal is reported; only what breaks or answers wrongly fails.
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openStdio } from "./client.mjs";
import { createRandom, median, toMarkdown, toText } from "./report.mjs";

const program = fileURLToPath(new URL("../bin/meanwhile.cjs", import.meta.url));
const { values: options } = parseArgs({ options: { quick: { type: "boolean" }, markdown: { type: "boolean" } } });
/** Chunks hold about a thousand characters, so a file of ten thousand has eleven. */
const size = options.quick
  ? { notes: 1_000, files: 1_000, queries: 200, greps: 2 }
  : { notes: 10_000, files: 9_400, queries: 1_000, greps: 5 };
const fileCharacters = 10_000;
/**
 * Nobody looks for a phrase or a beginning of the commonest words alone; a search for such takes up to twice as long.
 */
const commonest = 100;

const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-pack-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
const env = { PATH: process.env.PATH, HOME: scratch, MEANWHILE_HOME: path.join(scratch, ".meanwhile") };
const random = createRandom(20260728);
const words = createWords(30_000);
const startedAt = performance.now();
const rows = [];

measureVault();
measureIngest();
await measureSearch();
report();

/**
 * Words by how often they are used, as in any language: the second half as often as the first, the third a third as
 * often.
 */
function createWords(count) {
  const syllables =
    "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro ru sa se si so su ta te ti to tu".split(
      " ",
    );
  const list = Array.from({ length: count }, (_, at) => {
    let word = "";
    for (let rest = at + 50; rest > 0; rest = Math.floor(rest / syllables.length))
      word += syllables[rest % syllables.length];
    return word;
  });
  const sums = [];
  let sum = 0;
  for (let at = 1; at <= count; at++) {
    sum += 1 / at;
    sums.push(sum);
  }
  return { list, sums, sum };
}

function pickWord() {
  const wanted = random() * words.sum;
  let low = 0;
  let high = words.list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (words.sums[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return words.list[low];
}

function makeText(characters) {
  const pieces = [];
  for (let length = 0; length < characters; length += pieces.at(-1).length)
    pieces.push(pickWord(), random() < 0.08 ? ".\n" : " ");
  return pieces.join("").slice(0, characters);
}

/** `meanwhile …`: its data, how long it took, and how much memory at most. */
function run(...line) {
  const began = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...line, "--json", "--quiet"], {
    cwd: scratch,
    env,
    encoding: "utf8",
    maxBuffer: 1e9,
  });
  if (status !== 0) throw new Error(`meanwhile ${line.join(" ")} ended with ${status}: ${stderr}`);
  return { data: JSON.parse(stdout), ms: performance.now() - began };
}

function shell(command) {
  const began = performance.now();
  const { status } = spawnSync("sh", ["-c", command], { cwd: scratch, env, stdio: "ignore" });
  if (status === null || status > 1) throw new Error(`${command} ended with ${status}`);
  return performance.now() - began;
}

function expectEqual(what, found, expected) {
  if (JSON.stringify(found) !== JSON.stringify(expected))
    throw new Error(`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(found)}`);
}

function addRow(title, unit, peer, value, goal) {
  const format = (number) =>
    number === undefined
      ? "–"
      : unit === "ms" && number < 1_000
        ? number.toFixed(1)
        : Math.round(number).toLocaleString("en-US");
  rows.push({
    cells: [
      title,
      unit,
      format(peer),
      format(value),
      peer === undefined ? "–" : (value / peer).toFixed(2),
      goal === undefined ? "" : `${goal.text}: ${goal.isMet ? "met" : "MISSED"}`,
    ],
    goal,
    title,
  });
}

/** Notes whose links are known: each leads to the next ones, some lead nowhere, and code looks like more. */
function measureVault() {
  const links = { resolved: 0, broken: 0 };
  for (let at = 0; at < size.notes; at++) {
    const folder = path.join(scratch, "notes", `d${at % 100}`);
    if (at < 100) mkdirSync(folder, { recursive: true });
    const targets = Array.from({ length: at % 12 }, (_, step) => `[[n${(at * 31 + step * 7) % size.notes}|words]]`);
    if (at % 10 === 0) targets.push(`[[gone${at}]]`);
    links.resolved += at % 12;
    links.broken += at % 10 === 0 ? 1 : 0;
    writeFileSync(
      path.join(folder, `n${at}.md`),
      `---\ntags: [t${at % 30}]\n---\n# Note ${at}\n\n${makeText(1_500)}\n${targets.join(" ")}\n\`[[code]]\`\n\`\`\`\n[[fenced]]\n\`\`\`\n`,
    );
  }
  const expected = {
    notes: size.notes,
    links: links.resolved + links.broken,
    resolved_links: links.resolved,
    broken_links: links.broken,
  };
  const counts = ({ notes, links: all, resolved_links, broken_links }) => ({
    notes,
    links: all,
    resolved_links,
    broken_links,
  });
  const grep = shell("grep -rohE '\\[\\[[^]]*\\]\\]' notes > found.txt");
  const first = run("vault", "index", "notes");
  expectEqual(
    "the first index",
    { ...counts(first.data), read: first.data.notes_parsed },
    { ...expected, read: size.notes },
  );
  const title = `vault index, ${size.notes.toLocaleString("en-US")} notes with ${expected.links.toLocaleString("en-US")} links`;
  addRow(`${title}, first run, beside grep`, "ms", grep, first.ms);
  const again = run("vault", "index", "notes");
  expectEqual("the second index", { ...counts(again.data), read: again.data.notes_parsed }, { ...expected, read: 0 });
  addRow(
    "the same, nothing changed, beside find",
    "ms",
    shell("find notes -type f -newer / -printf '%s %T@ %i\\n' > found.txt"),
    again.ms,
  );
  for (let at = 0; at < size.notes; at += 100)
    appendFileSync(path.join(scratch, "notes", `d${at % 100}`, `n${at}.md`), "\n[[n1]]\n");
  const changed = run("vault", "index", "notes");
  const grown = {
    ...expected,
    links: expected.links + size.notes / 100,
    resolved_links: expected.resolved_links + size.notes / 100,
  };
  expectEqual(
    "the third index",
    { ...counts(changed.data), read: changed.data.notes_parsed },
    { ...grown, read: size.notes / 100 },
  );
  addRow("the same, 1 % changed", "ms", undefined, changed.ms);
}

function measureIngest() {
  for (let at = 0; at < size.files; at++) {
    const folder = path.join(scratch, "texts", `d${at % 100}`);
    if (at < 100) mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, `f${at}.txt`), makeText(fileCharacters));
  }
  const { data, ms } = run("ingest", "sources", "texts");
  expectEqual("what was ingested", [data.files_ingested, data.errors_total], [size.files, 0]);
  addRow(
    `ingest sources, ${size.files.toLocaleString("en-US")} files in ${data.chunks_written.toLocaleString("en-US")} chunks`,
    "chunks/s",
    undefined,
    data.chunks_written / (ms / 1000),
  );
  addRow("the same again, nothing changed", "ms", undefined, run("ingest", "sources", "texts").ms);
}

function pickTelling() {
  for (;;) {
    const word = pickWord();
    if (words.list.indexOf(word) >= commonest) return word;
  }
}

/**
 * Queries as people and models write them: single words, several, whole questions, phrases and beginnings; words come
 * as often as in the texts.
 */
function makeQuery(at) {
  const several = (count) => Array.from({ length: count }, pickWord).join(" ");
  const kinds = [
    () => several(1),
    () => several(2),
    () => several(2),
    () => several(3),
    () => several(6),
    () => `"${pickTelling()} ${pickWord()}"`,
    () => `${pickTelling()}*`,
    () => several(12),
  ];
  return kinds[at % kinds.length]();
}

async function measureSearch() {
  const client = await openStdio({ stdio: [program, "serve", "--in-process"] }, env);
  const times = [];
  try {
    for (let at = -20; at < size.queries; at++) {
      const began = performance.now();
      const answer = await client.request("tools/call", {
        name: "ingest_search",
        arguments: { query: makeQuery(Math.abs(at)) },
      });
      if (at >= 0) times.push(performance.now() - began);
      if (answer.result?.structuredContent?.success !== true)
        throw new Error(`a search was answered with ${JSON.stringify(answer)}`);
    }
  } finally {
    await client.close();
  }
  const greps = Array.from({ length: size.greps }, () => shell(`grep -rlwF ${pickWord()} texts > found.txt`));
  const p95 = percentile(times, 0.95);
  addRow("ingest search over stdio, p50, beside grep", "ms", median(greps), median(times));
  addRow("the same, p95", "ms", undefined, p95, { text: "< 50 ms", isMet: p95 < 50 });
  addRow("the same, p99", "ms", undefined, percentile(times, 0.99));
}

function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1];
}

function report() {
  const table = { head: ["", "unit", "peer", "Meanwhile", "÷ peer", "goals"], lines: rows.map(({ cells }) => cells) };
  const missed = rows.filter(({ goal }) => goal?.isMet === false).map(({ title }) => title);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const about = `Node ${process.versions.node}, ${os.availableParallelism()} cores, ${os.type()}, load ${os.loadavg()[0].toFixed(1)}, ${seconds} s; one run.`;
  process.stdout.write(
    `${options.markdown ? toMarkdown(table) : toText(table)}\n\n${about}\n${missed.length === 0 ? "Every goal is met." : `Missed: ${missed.join("; ")}.`}\n`,
  );
}
