// Pages of a long list: tasks loaded in bulk into the real schema, and as many in the SDK's store.
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import { openStore } from "../../src/store/open.ts";
import { toCursor } from "../../src/store/page-cursor.ts";
import { loadEnded } from "./load.mjs";

const callers = 100;
const pageSize = 50;
const callerOf = (at) => `caller ${at % callers}`;

/** A file with `count` tasks, opened; `first` and `deep` read one page each, of another caller every time. */
export async function openLongList(file, count) {
  await (await openStore(file)).close();
  loadEnded(file, { count, callers });
  const store = await openStore(file);
  const read = async (turn, cursor) => {
    const caller = callerOf(turn);
    const page = await store.list({ caller }, { limit: pageSize, ...(cursor !== undefined && { cursor }) });
    const isRight =
      page.tasks.length === pageSize &&
      page.nextCursor !== undefined &&
      page.tasks.every((task) => task.caller === caller);
    if (!isRight) throw new Error(`a page of ${caller} had ${page.tasks.length} tasks`);
  };
  return {
    first: (turn) => read(turn),
    deep: (turn) => read(turn, toCursor(callerOf(turn), Math.floor(count / 2))),
    close: () => store.close(),
  };
}

/** The same list in the SDK's store, whose pages hold ten. */
export async function openSdkList(count) {
  const store = new InMemoryTaskStore();
  const middle = new Map();
  for (let at = 0; at < count; at++) {
    const { taskId } = await store.createTask({}, at, { method: "tools/call", params: { name: "echo" } }, callerOf(at));
    if (at < count / 2) middle.set(callerOf(at), taskId);
  }
  const read = async (turn, cursor) => {
    const page = await store.listTasks(cursor, callerOf(turn));
    if (page.tasks.length !== 10) throw new Error(`a page of the SDK's store had ${page.tasks.length} tasks`);
  };
  return {
    first: (turn) => read(turn),
    deep: (turn) => read(turn, middle.get(callerOf(turn))),
    close: () => store.cleanup(),
  };
}
