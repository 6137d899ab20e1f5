// What a model is made of: events in their order, random numbers by a seed, and three kinds of places where one waits.
// No clock and no processor of this machine has any part in it.

/** What happens, in the order of its time. */
export class Events {
  now = 0;
  #heap = [];
  #made = 0;

  after(ms, act) {
    const heap = this.#heap;
    const event = { at: this.now + ms, order: this.#made++, act };
    let place = heap.length;
    for (; place > 0; ) {
      const parent = (place - 1) >> 1;
      if (!isBefore(event, heap[parent])) break;
      heap[place] = heap[parent];
      place = parent;
    }
    heap[place] = event;
  }

  runUntil(end) {
    while (this.#heap.length > 0 && this.#heap[0].at <= end) {
      const event = this.#next();
      this.now = event.at;
      event.act();
    }
    this.now = end;
  }

  #next() {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    let place = 0;
    for (let child = 1; child < heap.length; child = 2 * place + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child += 1;
      if (!isBefore(heap[child], last)) break;
      heap[place] = heap[child];
      place = child;
    }
    if (heap.length > 0) heap[place] = last;
    return first;
  }
}

function isBefore(one, other) {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/** The same numbers for the same seed: mulberry32. */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** How much of something is in use between two times. */
class Use {
  #from;
  #to;
  #total = 0;

  constructor({ from, to }) {
    this.#from = from;
    this.#to = to;
  }

  add(from, to, count = 1) {
    this.#total += count * Math.max(0, Math.min(to, this.#to) - Math.max(from, this.#from));
  }

  part(count) {
    return this.#total / count / (this.#to - this.#from);
  }
}

/** So many that serve, who came first first; each one's work is known when it comes. */
export class Servers {
  #events;
  #freeAt;
  #use;

  constructor(events, count, span) {
    this.#events = events;
    this.#freeAt = Array.from({ length: count }, () => 0);
    this.#use = new Use(span);
  }

  serve(ms, then) {
    let first = 0;
    for (let at = 1; at < this.#freeAt.length; at++) if (this.#freeAt[at] < this.#freeAt[first]) first = at;
    const from = Math.max(this.#events.now, this.#freeAt[first]);
    this.#freeAt[first] = from + ms;
    this.#use.add(from, from + ms);
    if (then !== undefined) this.#events.after(from + ms - this.#events.now, then);
  }

  /** Something else took so long since it was last free; what comes next may have to wait for it. */
  delay(ms) {
    this.#freeAt[0] += ms;
  }

  get busy() {
    return this.#use.part(this.#freeAt.length);
  }
}

/** One act for all who wait when it begins; who comes meanwhile is of the next one. */
export class GroupCommit {
  #events;
  #ms;
  #use;
  #waiting = [];
  #isUnderWay = false;

  constructor(events, ms, span) {
    this.#events = events;
    this.#ms = ms;
    this.#use = new Use(span);
  }

  commit(then) {
    this.#waiting.push(then);
    if (!this.#isUnderWay) this.#begin();
  }

  #begin() {
    const served = this.#waiting;
    this.#waiting = [];
    this.#isUnderWay = true;
    const ms = this.#ms();
    this.#use.add(this.#events.now, this.#events.now + ms);
    this.#events.after(ms, () => {
      this.#isUnderWay = false;
      for (const then of served) then();
      if (this.#waiting.length > 0 && !this.#isUnderWay) this.#begin();
    });
  }

  get busy() {
    return this.#use.part(1);
  }
}

/** So many that are taken, and given back when whoever has one is done; `then` hears whether it had to wait. */
export class Slots {
  #events;
  #count;
  #use;
  #taken = 0;
  #changedAt = 0;
  #waiting = [];

  constructor(events, count, span) {
    this.#events = events;
    this.#count = count;
    this.#use = new Use(span);
  }

  take(then) {
    if (this.#taken === this.#count) return void this.#waiting.push(then);
    this.#change(1);
    then(() => this.#release(), false);
  }

  #release() {
    const next = this.#waiting.shift();
    if (next === undefined) this.#change(-1);
    else next(() => this.#release(), true);
  }

  #change(by) {
    this.#use.add(this.#changedAt, this.#events.now, this.#taken);
    this.#changedAt = this.#events.now;
    this.#taken += by;
  }

  get busy() {
    this.#change(0);
    return this.#use.part(this.#count);
  }
}
