import {
  allTaskColumns,
  type ColumnKind,
  type PlainTable,
  payloadColumns,
  plainTables,
  taskColumns,
} from "../transfer.ts";
import { copyingTable } from "../unfinished.ts";

/** What a copy says to PostgreSQL; SQLite's say the same. `mine` is the guard of everything it writes. */
const columns = allTaskColumns.filter((name) => !payloadColumns.includes(name));
const inRange = "number > :after and number <= :upTo";
const mine = `exists (select 1 from SCHEMA.${copyingTable} where copier = :copier)`;

/** What is counted and looked for without reading the questions. */
const derived = { open_questions: "bigint", lapses_at: "bigint" };
const given: Readonly<Record<string, string>> = {
  ...typed(taskColumns.texts, "text"),
  ...typed(taskColumns.integers, "bigint"),
  ...typed(taskColumns.reals, "float8"),
  ...typed(taskColumns.flags, "boolean"),
  ...derived,
};

function typed(names: readonly string[], type: string): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, type]));
}

const written = [...columns, ...Object.keys(derived)].join(", ");

const sqlTypes: Readonly<Record<ColumnKind, string>> = { text: "text", integer: "bigint" };

/** Columns that nobody else has, and what is in them. */
const ownColumns: Partial<Record<PlainTable["name"], Readonly<Record<string, string>>>> = {
  used_marks: { use_id: "'copied'" },
};

/** For each table that goes as it is. */
const plainStatements = Object.fromEntries(
  plainTables.flatMap(({ name, columns: own }) => {
    const names = Object.keys(own).join(", ");
    const more = ownColumns[name] ?? {};
    const values = Object.entries(own).map(([column, kind]) => `:${column}::${sqlTypes[kind]}[]`);
    return [
      [`read ${name}`, `select ${names} from SCHEMA.${name}`],
      [`clear ${name}`, `delete from SCHEMA.${name} where ${mine}`],
      [
        `write ${name}`,
        `insert into SCHEMA.${name} (${[names, ...Object.keys(more)].join(", ")}) select ${[names, ...Object.values(more)].join(", ")} from unnest(${values.join(", ")}) as given (${names}) where ${mine}`,
      ],
    ];
  }),
) as Record<`${"read" | "clear" | "write"} ${PlainTable["name"]}`, string>;

export const transferStatements = {
  ...plainStatements,

  countTasks: "select count(*) as tasks, count(*) filter (where finished_at is null) as live from SCHEMA.tasks",
  liveWorkers: `
    select worker, count(*) as tasks, max(lease_until) - SCHEMA.now_ms() as "leftMs" from SCHEMA.tasks
    where worker is not null and finished_at is null and lease_until >= SCHEMA.now_ms() group by worker order by worker`,

  weigh: `
    select number, bytes + coalesce((select sum(octet_length(value)) from SCHEMA.steps as s where s.number = t.number), 0)::bigint as bytes
    from SCHEMA.tasks as t where number > :after order by number limit :limit`,
  readTasks: `
    select ${columns.map((name) => `t.${name}`).join(", ")}, i.input, o.outcome
    from SCHEMA.tasks as t left join SCHEMA.inputs as i using (number) left join SCHEMA.outcomes as o using (number)
    where ${inRange.replaceAll("number", "t.number")} order by t.number`,
  readSteps: `select number, name, value from SCHEMA.steps where ${inRange}`,

  removeTasks: `delete from SCHEMA.tasks where number = any(:numbers::bigint[]) and ${mine} returning number`,
  /** A page with all that belongs to it, or nothing; what is there already is from the same page. */
  writeTasks: `
    with fresh as materialized (
      select * from unnest(${Object.entries(given)
        .map(([name, type]) => `:${name}::${type}[]`)
        .join(", ")}) as given (${Object.keys(given).join(", ")})),
    kept as (
      insert into SCHEMA.tasks (${written}, bytes) overriding system value
      select ${written}, coalesce(octet_length(input), 0) + coalesce(octet_length(outcome), 0) from fresh where ${mine}
      on conflict (number) do nothing returning number),
    inputs as (
      insert into SCHEMA.inputs (number, input) select number, input from fresh join kept using (number) where input is not null),
    outcomes as (
      insert into SCHEMA.outcomes (number, outcome) select number, outcome from fresh join kept using (number) where outcome is not null),
    steps as (
      insert into SCHEMA.steps (number, name, value)
      select number, name, value from unnest(:stepOf::bigint[], :stepNames::text[], :stepValues::text[]) as step (number, name, value)
      join kept using (number))
    select number from kept`,

  makeMark: `create table if not exists SCHEMA.${copyingTable} (source text not null, copier text not null)`,
  writeMark: `
    with before as (delete from SCHEMA.${copyingTable}) insert into SCHEMA.${copyingTable} (source, copier) values (:source, :copier)`,
  hasMark: `select to_regclass('SCHEMA.${copyingTable}') is not null as found`,
  readMark: `select source, copier from SCHEMA.${copyingTable}`,
  /** New numbers come after the last. */
  moveNumbers: `
    select setval(pg_get_serial_sequence('SCHEMA.tasks', 'number'), coalesce(max(number), 1), max(number) is not null) from SCHEMA.tasks`,
  dropMark: `drop table SCHEMA.${copyingTable}`,
} as const;
