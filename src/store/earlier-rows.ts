import { earlierLocalKey } from "../command/caller.ts";

/**
 * Rows of `local`, the key of every local user in the versions that did not tell homes apart. In a store that several
 * homes may use nobody knows whose they are, so no caller sees them until `meanwhile store migrate` gives them to a home.
 * `taken_rows` remembers which rows a home took, so that it can give them back.
 */

/** Rows of one project. */
export interface EarlierRows {
  readonly project: string;
  readonly tasks: number;
  readonly sessions: number;
}

/** What every database is asked; PostgreSQL's tables stand in a schema. `key`: how a statement names its one value. */
export function earlierStatements(prefix: string, key: string) {
  const [tasks, sessions, taken] = ["tasks", "sessions", "taken_rows"].map((name) => `${prefix}${name}`);
  const earlier = `'${earlierLocalKey}'`;
  // A session is kept under its project and its caller.
  const isEarlierSession = `sessions.caller like '% ' || ${earlier}`;
  const projectOf = (caller: string) => `substr(sessions.caller, 1, length(sessions.caller) - length(${caller}) - 1)`;
  const isRepeated = `idempotency_key is not null and exists (
    select 1 from ${tasks} as own
    where own.caller = ${key} and own.project = tasks.project and own.idempotency_key = tasks.idempotency_key)`;
  const isTaken = (kind: string, id: string) => `taken.kind = '${kind}' and taken.id = ${id} and taken.caller = ${key}`;
  return {
    count: countOf(`tasks.caller = ${earlier}`, isEarlierSession, projectOf(earlier)),
    countTaken: countOf(
      `tasks.caller = ${key} and exists (select 1 from ${taken} as taken where ${isTaken("task", "tasks.task_id")})`,
      `sessions.caller like '% ' || ${key} and exists (select 1 from ${taken} as taken where ${isTaken("session", "sessions.session_id")})`,
      projectOf(key),
    ),
    take: [
      `insert into ${taken} (kind, id, caller, idempotency_key)
       select 'task', task_id, ${key}, case when ${isRepeated} then idempotency_key end from ${tasks} as tasks where caller = ${earlier}`,
      `insert into ${taken} (kind, id, caller) select 'session', session_id, ${key} from ${sessions} as sessions where ${isEarlierSession}`,
      // One key leads to one task: to the one that this home has made itself.
      `update ${tasks} as tasks set idempotency_key = null where caller = ${earlier} and ${isRepeated}`,
      `update ${tasks} set caller = ${key} where caller = ${earlier}`,
      `update ${sessions} as sessions set caller = ${projectOf(earlier)} || ' ' || ${key} where ${isEarlierSession}`,
    ],
    giveBack: [
      `update ${tasks} as tasks set caller = ${earlier}, idempotency_key = coalesce(tasks.idempotency_key, taken.idempotency_key)
       from ${taken} as taken where ${isTaken("task", "tasks.task_id")} and tasks.caller = ${key}`,
      `update ${sessions} as sessions set caller = ${projectOf(key)} || ' ' || ${earlier}
       from ${taken} as taken where ${isTaken("session", "sessions.session_id")} and sessions.caller like '% ' || ${key}`,
      `delete from ${taken} where caller = ${key}`,
    ],
  };

  function countOf(ofTasks: string, ofSessions: string, project: string): string {
    return `
      select project, sum(tasks) as tasks, sum(sessions) as sessions
      from (select project, count(*) as tasks, 0 as sessions from ${tasks} as tasks where ${ofTasks} group by project
            union all
            select ${project}, 0, count(*) from ${sessions} as sessions where ${ofSessions} group by 1) as found
      group by project order by project`;
  }
}

/** How many rows there are in all projects. */
export function sumOf(rows: readonly EarlierRows[]): Omit<EarlierRows, "project"> {
  const sum = (name: "tasks" | "sessions") => rows.reduce((total, row) => total + Number(row[name]), 0);
  return { tasks: sum("tasks"), sessions: sum("sessions") };
}
