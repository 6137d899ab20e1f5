import type { TaskStore } from "../../src/task/store.ts";
import { newTask } from "../store-suite/cases/bench.ts";

/**
 * How many times longer a create takes for a caller with 10,000 live tasks than for one with none: the median of pairs
 * that are measured one after the other, so that a busy machine slows both.
 */
export async function costOfLiveTasks(store: TaskStore): Promise<number> {
  const options = { joinsEqual: false, maxLive: 20_000 };
  let made = 0;
  const create = (caller: string) => store.create(newTask(++made, { caller }), options);
  for (let batch = 0; batch < 100; batch++) await Promise.all(Array.from({ length: 100 }, () => create("many")));
  const measure = async (caller: string) => {
    const begin = performance.now();
    await create(caller);
    return performance.now() - begin;
  };
  const ratios: number[] = [];
  for (let pair = 0; pair < 201; pair++) {
    const [first, second] = pair % 2 === 0 ? ["many", `none-${pair}`] : [`none-${pair}`, "many"];
    const [one, other] = [await measure(first as string), await measure(second as string)];
    ratios.push(first === "many" ? one / other : other / one);
  }
  return ratios.toSorted((a, b) => a - b)[100] ?? Number.POSITIVE_INFINITY;
}
