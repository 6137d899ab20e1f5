import { allTaskColumns, type PlainTable, payloadColumns } from "../transfer.ts";
import { copyingTable } from "../unfinished.ts";

/** What a copy says to SQLite, named for its verb; PostgreSQL's say the same. `mine` is the guard of everything it writes. */
const columns = allTaskColumns.filter((name) => !payloadColumns.includes(name));
const inRange = "number > :after and number <= :upTo";
const mine = `exists (select 1 from ${copyingTable} where copier = :copier)`;
const apart = (name: string) => `(select ${name} from ${name}s where ${name}s.number = tasks.number) as ${name}`;

export const transferStatements = {
  countTasks: "select count(*) as tasks, count(*) filter (where finished_at is null) as live from tasks",
  liveWorkers: `
    select worker, count(*) as tasks, max(lease_until) - :now as leftMs from tasks
    where worker is not null and finished_at is null and lease_until >= :now group by worker order by worker`,

  weigh: `
    select number, bytes + coalesce((select sum(octet_length(value)) from steps where steps.task_id = tasks.task_id), 0) as bytes
    from tasks where number > :after order by number limit +:limit`,
  readTasks: `select ${columns.join(", ")}, ${payloadColumns.map(apart).join(", ")} from tasks where ${inRange} order by number`,
  readSteps: `select number, name, value from tasks cross join steps using (task_id) where ${inRange}`,

  removeTask: `delete from tasks where number = :number and ${mine}`,
  writeTask: `
    insert into tasks (${columns.join(", ")}, bytes)
    select ${columns.map((name) => `:${name}`).join(", ")},
           coalesce(octet_length(:input), 0) + iif(:finished_at is null, 0, coalesce(octet_length(:outcome), 0) + octet_length(:questions))
    where ${mine}`,
  writeInput: "insert into inputs (number, input) values (:number, :input)",
  writeOutcome: "insert into outcomes (number, outcome) values (:number, :outcome)",
  writeStep: "insert into steps (task_id, name, value) values (:taskId, :name, :value)",

  hasMark: `select 1 as found from sqlite_schema where type = 'table' and name = '${copyingTable}'`,
  makeMark: `create table if not exists ${copyingTable} (source text not null, copier text not null) strict`,
  clearMark: `delete from ${copyingTable}`,
  writeMark: `insert into ${copyingTable} (source, copier) values (:source, :copier)`,
  readMark: `select source, copier from ${copyingTable}`,
  dropMark: `drop table ${copyingTable}`,
} as const;

/** The same for a table that goes as it is. */
export function plainStatements({ name, columns: own }: PlainTable) {
  const names = Object.keys(own);
  return {
    read: `select ${names.join(", ")} from ${name}`,
    clear: `delete from ${name} where ${mine}`,
    write: `insert into ${name} (${names.join(", ")}) values (${names.map((column) => `:${column}`).join(", ")})`,
  };
}
