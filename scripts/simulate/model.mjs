// Many nodes on one database, event by event, by the costs that were measured of one.
//
// A task comes to one of the nodes, which makes it under its own claim where there is a free place, or makes it, and it is
// claimed when one is free anywhere; it runs; it is settled. Each write takes a connection of the node's pool, then the database's processor,
// then the disk; changes are told by notices, at most one in four milliseconds of a node, each of which takes the lock of
// all notices, the database's processor once more for every node that hears it, and those nodes' own. And every node
// looks now and then, which costs more the more of them hold a task. Times are random, with the measured ones as their mean.
import { Events, GroupCommit, randomOf, Servers, Slots } from "./stations.mjs";

const noticePauseMs = 4;
const lookEveryMs = 1_000;

/**
 * `costs` are milliseconds, see costs.mjs; `terms` say how many processors the database has, how large a node's pool is
 * and how many tasks it runs at a time. Of `seconds` the first half is not counted.
 */
export function simulate({ nodes, tasksPerSecond, runMs, costs, terms, seconds, seed }) {
  const random = randomOf(seed);
  const draw = (mean) => -Math.log(1 - random()) * mean;
  const events = new Events();
  const end = seconds * 1000;
  const span = { from: end / 2, to: end };
  const database = openDatabase({ events, span, nodes, costs, terms, draw });
  const places = new Slots(events, nodes * terms.places, span);
  const tally = { begun: [], heldMs: 0, done: 0 };
  const shared = { events, span, costs, terms, draw, database, places, tally };
  const fleet = Array.from({ length: nodes }, () => openNode(shared));
  for (const node of fleet) {
    node.look(random() * lookEveryMs);
    node.receive((1000 * nodes) / tasksPerSecond, runMs);
  }
  events.runUntil(end);
  tally.begun.sort((a, b) => a - b);
  const mean = (of) => fleet.reduce((sum, node) => sum + of(node), 0) / nodes;
  return {
    perSecond: tally.done / ((span.to - span.from) / 1000),
    held: places.busy * nodes * terms.places,
    heldMs: tally.heldMs / tally.done,
    p50: tally.begun[tally.begun.length >> 1],
    p99: tally.begun[Math.floor(tally.begun.length * 0.99)],
    busy: {
      ...database.busy(),
      pool: mean(({ pool }) => pool.busy),
      places: places.busy,
      node: mean(({ processor }) => processor.busy) + database.heard(),
    },
    spent: database.spent,
  };
}

function openDatabase({ events, span, nodes, costs, terms, draw }) {
  const processor = new Servers(events, terms.cores, span);
  const disk = new GroupCommit(events, () => draw(costs.commitMs), span);
  const lock = new Slots(events, 1, span);
  const spent = { writes: 0, looks: 0, notices: 0 };
  let held = 0;
  let notices = 0;
  let heardMs = 0;
  const spend = (purpose, mean, then) => {
    const ms = draw(mean);
    if (events.now >= span.from) spent[purpose] += ms / (terms.cores * (span.to - span.from));
    processor.serve(ms, then);
  };
  const hear = () => {
    // Each node's connection wakes by itself, on whichever processor is free.
    for (let at = 0; at < terms.cores; at++) spend("notices", (costs.hearMs * nodes) / terms.cores);
    heardMs += costs.nodeHearMs;
    if (events.now >= span.from) notices += 1;
  };
  return {
    hold: (change) => (held += change),
    write: (mean, then) => spend("writes", mean, () => disk.commit(then)),
    look: (then) => spend("looks", costs.lookMs + costs.lookOfWorkerMs * Math.min(held, nodes), then),
    notify: (then) =>
      spend("notices", costs.noticeMs, () =>
        lock.take((release) =>
          spend("notices", costs.lockMs, () => {
            release();
            hear();
            then();
          }),
        ),
      ),
    /** What each node has spent on hearing, in all and in what is counted. */
    heardMs: () => heardMs,
    heard: () => (notices * costs.nodeHearMs) / (span.to - span.from),
    spent,
    busy: () => ({ processor: processor.busy, disk: disk.busy, lock: lock.busy }),
  };
}

function openNode({ events, span, costs, terms, draw, database, places, tally }) {
  const pool = new Slots(events, terms.pool, span);
  const processor = new Servers(events, 1, span);
  const ask = (act, then) =>
    pool.take((release) =>
      act(() => {
        release();
        then();
      }),
    );
  const tell = createTeller(events, (then) => ask(database.notify, then));
  const write = (mean, then) =>
    ask(
      (done) => database.write(mean, done),
      () => {
        tell();
        then();
      },
    );
  let heardMs = 0;
  const work = (then) => {
    // What it has heard meanwhile comes before.
    processor.delay(database.heardMs() - heardMs);
    heardMs = database.heardMs();
    processor.serve(draw(costs.nodeMs / 2), then);
  };
  return { pool, processor, look, receive };

  function look(ms) {
    events.after(ms, () => {
      ask(database.look, () => undefined);
      look(lookEveryMs);
    });
  }

  function receive(pauseMs, runMs) {
    events.after(draw(pauseMs), () => {
      const at = events.now;
      work(() => places.take((release, hasWaited) => run({ at, runMs, release, hasWaited })));
      receive(pauseMs, runMs);
    });
  }

  function run({ at, runMs, release, hasWaited }) {
    const heldFrom = events.now;
    const end = () => {
      database.hold(-1);
      release();
      if (events.now < span.from) return;
      tally.done += 1;
      tally.heldMs += events.now - heldFrom;
    };
    write(hasWaited ? costs.createMs + costs.claimMs : costs.createMs, () => {
      if (events.now >= span.from) tally.begun.push(events.now - at);
      database.hold(1);
      events.after(draw(runMs), () => work(() => write(costs.settleMs, end)));
    });
  }
}

/** One notice at a time, and a pause after each; what is to be told meanwhile is told by the next. */
function createTeller(events, send) {
  let isSending = false;
  let isMore = false;
  const go = () => {
    isSending = true;
    isMore = false;
    send(() =>
      events.after(noticePauseMs, () => {
        isSending = false;
        if (isMore) go();
      }),
    );
  };
  return () => {
    if (isSending) isMore = true;
    else go();
  };
}
