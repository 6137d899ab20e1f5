// The figures as Markdown, ready for docs/scaling.md.
import { findLimit } from "./limit.mjs";
import { simulate } from "./model.mjs";

const seed = 1;
const byStore = "MEANWHILE_QUEUE=store";
/** What a node has by default: connections for its statements, tasks at a time, and connections in all. */
const node = { pool: 8, places: 16, connections: 15 };
const allCores = [2, 16];
const allRuns = [100, 10_000];
const allNodes = [10, 100, 1_000];
const names = {
  processor: "the database's processors",
  disk: "commits to the disk",
  lock: "the lock of notices",
  pool: "connections of a node",
  places: "places to run",
  node: "a node's processor",
};

const assumptions = `This is a model, not a measurement. Tasks come at random to any node, a task is made, run and settled where there is a place, each statement by itself
(a node sends what comes in one moment together, which costs less); all times are random with the measured ones as their mean; each node looks by itself every second, and a
notice, of which a node sends one in four milliseconds at most, is heard by all. A load is too much where the p99 from create to begun is over a second, or anything is more than
95 % busy. It leaves out the network, replication, the queue's own load, autovacuum, what PostgreSQL needs for so many connections (and that it has to allow them: 100 by
default), clients that ask for their tasks, and progress. The lock is in use also while whoever has it waits for a processor. With ${byStore} a notice of work makes every node
claim, which is not in it. More than the measured number of processors is taken to do as many times as much.`;

const ms = (value) => (value === undefined ? "–" : value.toFixed(value < 0.1 ? 3 : 2));
const count = (value) => (value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en-US"));
const percent = (part) => `${Math.round(part * 100)} %`;

export function measuredTable({ few, many }) {
  const load = ({ load: [before, after] }) => `${before.toFixed(1)} to ${after.toFixed(1)}`;
  const rows = Object.entries(few.figures).map(([name, before]) => {
    const now = many.figures[name];
    const times = before.p50 === undefined || now.p50 === undefined ? "–" : (now.p50 / before.p50).toFixed(2);
    return `| ${name} | ${ms(before.p50)} / ${ms(before.p99)} | ${ms(now.p50)} / ${ms(now.p99)} | ${times} | ${ms(now.processorMs)} |`;
  });
  return [
    `| p50 / p99 in ms | ${count(few.total)} tasks | ${count(many.total)} tasks | p50, × | server's processor, ms |`,
    "| --- | ---: | ---: | ---: | ---: |",
    ...rows,
    "",
    `${count(few.held)} and ${count(many.held)} of them are held, by ${count(few.workers)} and ${count(many.workers)} workers. Load ${load(few)} and ${load(many)}. The database has ${(many.bytes / 1e9).toFixed(1)} GB.`,
  ].join("\n");
}

export function costTable(costs) {
  const rows = {
    "create under its maker's claim": costs.createMs,
    claim: costs.claimMs,
    settle: costs.settleMs,
    "a notice, beside its lock": costs.noticeMs,
    "the lock of notices, for each": costs.lockMs,
    "a notice, for each node that hears it": costs.hearMs,
    "looks of a node, in a second": costs.lookMs,
    "the same, for each node that holds a task": costs.lookOfWorkerMs,
    "commit to the disk, for all who wait (p50)": costs.commitMs,
    "node: a task": costs.nodeMs,
    "node: a notice heard": costs.nodeHearMs,
  };
  return [
    "| costs that the model is given | ms |",
    "| --- | ---: |",
    ...Object.entries(rows).map(([name, value]) => `| ${name} | ${value.toFixed(4)} |`),
  ].join("\n");
}

/** `note` hears how far it is. */
export function modelTable(costs, note) {
  const rows = allRuns.flatMap((runMs) =>
    allCores.flatMap((cores) => allNodes.map((nodes) => rowOf({ nodes, runMs, cores, costs }, note))),
  );
  return [
    "| nodes | connections | a run takes | the database's processors | busy when idle | tasks/s | create → begun, p50 / p99 ms | processors: writes, looks, notices | commits | lock | pool | places | node | fills up first |",
    "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ...rows,
    "",
    checkOf(costs),
    "",
    assumptions,
  ].join("\n");
}

function rowOf({ nodes, runMs, cores, costs }, note) {
  const terms = { cores, pool: node.pool, places: node.places };
  const { idle, limit, tasksPerSecond, first } = findLimit({ nodes, runMs, costs, terms, seed });
  note(`${nodes} nodes, ${cores} processors, runs of ${runMs} ms: ${count(tasksPerSecond)} tasks/s`);
  const { spent, busy } = limit;
  return `| ${[
    count(nodes),
    count(nodes * node.connections),
    `${runMs / 1000} s`,
    cores,
    percent(idle.busy.processor),
    count(tasksPerSecond),
    `${ms(limit.p50)} / ${ms(limit.p99)}`,
    [spent.writes, spent.looks, spent.notices].map(percent).join(", "),
    ...[busy.disk, busy.lock, busy.pool, busy.places, busy.node].map(percent),
    names[first],
  ].join(" | ")} |`;
}

/** What was measured of one node, beside what the model says of it. */
function checkOf(costs) {
  const { tasksPerSecond } = costs.measured;
  const terms = { cores: 2, pool: node.pool, places: node.places };
  const half = simulate({ nodes: 1, tasksPerSecond: tasksPerSecond / 2, runMs: 1, costs, terms, seconds: 20, seed });
  const most = findLimit({ nodes: 1, runMs: 1, costs, terms, seed });
  return [
    `One node made ${count(tasksPerSecond)} tasks a second, sixteen at a time, on the two cores that the server had as well, and took ${ms(costs.measured.processorMs)} ms of its processors for each.`,
    `The model has ${count(most.tasksPerSecond)} a second for one node with a core of its own (first: ${names[most.first]}), and at half of what was measured ${ms(half.p50)} ms from create to begun.`,
  ].join(" ");
}
