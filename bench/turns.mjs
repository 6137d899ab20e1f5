// Lets what is compared take turns in many short slices, in another order each time: what disturbs the machine disturbs
// them all.
import { measureCalls, openStdio } from "./client.mjs";
import { createRandom, median } from "./report.mjs";

/** One call at a time is at the mercy of where the scheduler puts client and server: it gets more, shorter slices. */
const slicesOfOne = 3;

/** Measures one round after the other into `results`: everybody gets so many `turns`, and so many `starts`. */
export class Turns {
  #results;
  #size;
  #random = createRandom(20260728);

  constructor(results, size) {
    this.#results = results;
    this.#size = size;
  }

  /**
   * Calls. Each of `list` has the beginning of its rows' ids, the name of its column, and opens a client; `counts` are
   * calls in a slice.
   */
  async compareCalls(list, { counts, width }) {
    const runs = [];
    try {
      for (const { id, name, open } of list)
        runs.push({ id, name, client: await open(), one: [], p50: [], cpuOne: [], many: [], cpu: [] });
      for (const { client } of runs) await measureCalls(client, { count: counts.warmUp, width });
      for (let turn = 0; turn < this.#size.turns; turn++) {
        for (let slice = 0; counts.one > 0 && slice < slicesOfOne; slice++)
          for (const run of this.#shuffled(runs)) await measureOne(run, counts);
        for (const run of this.#shuffled(runs)) await measureMany(run, counts, width);
      }
      for (const { id, name, client, one, p50, cpuOne, many, cpu } of runs) {
        if (one.length > 0) {
          this.#results.add(`${id}-1`, name, median(one));
          this.#results.add(`${id}-p50`, name, median(p50));
          this.#results.add(`${id}-cpu-1`, name, median(cpuOne));
        }
        this.#results.add(`${id}-${width}`, name, median(many));
        this.#results.add(`${id}-cpu`, name, median(cpu));
        this.#results.add(`${id}-memory`, name, client.process.residentMb());
      }
    } finally {
      for (const { client } of runs) await client.close();
    }
  }

  /**
   * Starts, from spawn to the answers of initialize and one tools/call. Each of `list` has the id of its row, a server
   * and its environment.
   */
  async compareStarts(list) {
    const runs = list.map((one) => ({ ...one, times: [] }));
    // One turn more than counted: code caches are written by a first start, and what is measured is every later one.
    for (let turn = 0; turn <= this.#size.starts; turn++) {
      for (const { server, env, times } of this.#shuffled(runs)) {
        const tookMs = await startOnce(server, env);
        if (turn > 0) times.push(tookMs);
      }
    }
    for (const { id, server, times } of runs) this.#results.add(id, server.name, median(times));
  }

  /** The list in another order each time, the same in every run of the bench. */
  #shuffled(list) {
    const rest = [...list];
    return list.map(() => rest.splice(Math.floor(this.#random() * rest.length), 1)[0]);
  }
}

async function measureOne({ client, one, p50, cpuOne }, counts) {
  await measureCalls(client, { count: counts.leadIn, width: 1 });
  const { callsPerSecond, p50Us, cpuMs } = await measureCalls(client, { count: counts.one, width: 1 });
  one.push(callsPerSecond);
  p50.push(p50Us);
  cpuOne.push((cpuMs * 1000) / counts.one);
}

async function measureMany(run, counts, width) {
  const { callsPerSecond, cpuMs } = await measureCalls(run.client, { count: counts.many, width });
  run.many.push(callsPerSecond);
  run.cpu.push((cpuMs * 1000) / counts.many);
}

async function startOnce(server, env) {
  const begunAt = performance.now();
  const client = await openStdio(server, env);
  await client.process.expect(client.call("first"), "the first call");
  const tookMs = performance.now() - begunAt;
  await client.close();
  return tookMs;
}
