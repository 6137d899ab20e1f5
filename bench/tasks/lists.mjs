// Pages of a long list: tasks loaded in bulk into the real schema, and as many in the SDK's store.
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import Database from "better-sqlite3";
import { openStore } from "../../src/store/open.ts";
import { toCursor } from "../../src/store/page-cursor.ts";
import { project } from "./engine.mjs";

const callers = 100;
const pageSize = 50;
const callerOf = (at) => `caller ${at % callers}`;

/** Makes `count` finished tasks of 100 callers in one transaction. */
function load(file, count) {
  const db = new Database(file);
  db.pragma("synchronous = OFF");
  db.pragma("journal_mode = MEMORY");
  db.pragma("cache_size = -256000");
  const result = JSON.stringify({
    ending: "completed",
    data: { text: "y".repeat(200) },
    messages: [],
    log: [],
    durationMs: 1,
  });
  const insert = `
    insert into tasks (task_id, caller, project, command, digest, input, reason, ttl_ms, is_safe, max_attempts, backoff_ms, status, version, fence,
                       attempts, not_before, outcome, created_at, updated_at, started_at, finished_at, expires_at)
    with recursive n (i) as (select 0 union all select i + 1 from n where i + 1 < :count)
    select lower(hex(randomblob(16))), 'caller ' || (i % ${callers}), :project, 'echo', lower(hex(randomblob(22))), '{"text":"hello"}', 'bench', 86400000,
           1, 1, 1000, 'completed', 3, 1, 1, :now, :result, :now - :count + i, :now, :now, :now, :now + 86400000
    from n`;
  db.prepare(insert).run({ count, project, now: Date.now(), result });
  db.pragma("journal_mode = WAL");
  db.close();
}

/** A file with `count` tasks, opened; `first` and `deep` read one page each, of another caller every time. */
export async function openLongList(file, count) {
  await (await openStore(file)).close();
  load(file, count);
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
