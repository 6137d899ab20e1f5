// npm run simulate [-- --live 1000000 --ended 10000000 --small 10000 --seconds 3 --keep FILE | --figures FILE]
// Fills a PostgreSQL server of its own with so many tasks, and measures what the store takes for what nodes ask of it,
// beside the same with few; then a model of 10, 100 and 1,000 nodes, made of these figures, says what fills up first.
// `--keep` writes the figures to a file, and `--figures` reads them from there instead of measuring. Linux alone.
import { readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import process from "node:process";
import { parseArgs } from "node:util";
import { systemClock } from "../src/clock.ts";
import { silentLog } from "../src/log.ts";
import { openStore } from "../src/store/open.ts";
import { measureCosts, toCosts } from "./simulate/costs.mjs";
import { fill, layout } from "./simulate/fill.mjs";
import { measure } from "./simulate/measure.mjs";
import { costTable, measuredTable, modelTable } from "./simulate/report.mjs";
import { startServer } from "./simulate/server.mjs";

const { values } = parseArgs({
  options: {
    live: { type: "string", default: "1000000" },
    ended: { type: "string", default: "10000000" },
    small: { type: "string", default: "10000" },
    seconds: { type: "string", default: "3" },
    keep: { type: "string" },
    figures: { type: "string" },
  },
});
const [live, ended, small, seconds] = [values.live, values.ended, values.small, values.seconds].map(Number);

const figures = values.figures === undefined ? await measureAll() : JSON.parse(readFileSync(values.figures, "utf8"));
if (values.keep !== undefined) writeFileSync(values.keep, JSON.stringify(figures, undefined, 2));
const costs = toCosts(figures);
process.stdout.write(`${measuredTable(figures)}\n\n${costTable(costs)}\n\n${modelTable(costs, note)}\n`);

async function measureAll() {
  const server = await startServer();
  try {
    const few = await measureAt(server, "few", { live: small, ended: small });
    const many = await measureAt(server, "many", { live, ended });
    note("what a model needs");
    const costs = await measureCosts({ server, schema: "many", seconds });
    return { few, many, costs };
  } finally {
    await server.stop();
  }
}

async function measureAt(server, schema, size) {
  const open = () => openStore(server.url(schema), { clock: systemClock, log: silentLog });
  const [store, other] = [await open(), await open()];
  try {
    const startedAt = performance.now();
    const { total, held, workers } = layout(size);
    const bytes = await fill(server, schema, size);
    note(`${total.toLocaleString("en-US")} tasks, filled in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
    const [loadBefore] = os.loadavg();
    const taken = await measure({ server, schema, size, seconds, store, other });
    return { total, held, workers, load: [loadBefore, os.loadavg()[0]], figures: taken, bytes };
  } finally {
    await store.close();
    await other.close();
  }
}

function note(words) {
  process.stderr.write(`${words}\n`);
}
