// How many tasks a second so many nodes carry, and what fills up first: the load is raised until it is too much.
import { simulate } from "./model.mjs";

const mostWaitMs = 1_000;
const mostBusy = 0.95;
const halvings = 7;

/** What the model says of the most that goes, and what is fullest there. */
export function findLimit({ nodes, runMs, costs, terms, seed }) {
  const seconds = Math.max(10, (12 * runMs) / 1000);
  const at = (tasksPerSecond) => simulate({ nodes, tasksPerSecond, runMs, costs, terms, seconds, seed });
  const idle = at(0.001);
  let [low, high, good] = [0, 1, idle];
  let bad = at(high);
  while (!isTooMuch(bad)) {
    [low, good, high] = [high, bad, high * 2];
    bad = at(high);
  }
  for (let n = 0; n < halvings; n++) {
    const middle = (low + high) / 2;
    const tried = at(middle);
    if (isTooMuch(tried)) [high, bad] = [middle, tried];
    else [low, good] = [middle, tried];
  }
  return {
    idle,
    limit: good ?? idle,
    tasksPerSecond: good === undefined ? 0 : low,
    first: fullest((bad ?? good).busy),
  };
}

/** More than one in a hundred has to wait for longer than that, or something has hardly any time left. */
function isTooMuch({ p99, busy }) {
  return (p99 ?? 0) > mostWaitMs || Object.values(busy).some((part) => part > mostBusy);
}

/** Who waits for one of these keeps those that come later in here: of several that are full the first is why. */
const inOrder = ["processor", "disk", "node", "lock", "pool", "places"];

function fullest(busy) {
  const highest = Math.max(...Object.values(busy));
  return inOrder.find((name) => busy[name] >= Math.min(highest, mostBusy));
}
