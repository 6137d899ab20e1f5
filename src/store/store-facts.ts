import { thisProgram } from "../program/program.ts";

/** What can be said of a store without changing anything of it. */
export interface StoreFacts {
  readonly kind: "SQLite" | "PostgreSQL";
  /** Without a password. */
  readonly place: string;
  /** Of SQLite, or of the server. */
  readonly version: string;
  readonly schema: { readonly version: number; readonly known: number };
  readonly tasks: TaskCounts | undefined;
  /** Rows of the local user of a version that did not tell homes apart. */
  readonly earlier: { readonly tasks: number; readonly sessions: number };
  readonly bytes: number;
  readonly connections: ConnectionFacts | undefined;
  /** By how much the store's clock is ahead of this machine's. */
  readonly clockAheadMs: number;
  /** Sentences: what is wrong, and what to do. */
  readonly problems: readonly string[];
}

export interface TaskCounts {
  readonly live: number;
  readonly ended: number;
  readonly steps: number;
  readonly oldestAt: number | null;
  readonly newestAt: number | null;
}

/** `nodeNeeds` is what one node opens at most. */
interface ConnectionFacts {
  readonly used: number;
  readonly allowed: number;
  readonly nodeNeeds: number;
}

/** Rows that lack what belongs to them, or belong to nothing. */
export interface Strays {
  readonly withoutInput: number;
  readonly endedWithoutOutcome: number;
  readonly liveWithOutcome: number;
  readonly ofNoTask: number;
}

/** What every database is asked; PostgreSQL's tables stand in a schema. */
export function checkStatements(prefix: string) {
  const table = (name: string) => `${prefix}${name}`;
  const none = (name: string) => `not exists (select 1 from ${table(name)} as other where other.number = t.number)`;
  const strays = (name: string) =>
    `(select count(*) from ${table(name)} as stray where not exists (select 1 from ${table("tasks")} as t where t.number = stray.number))`;
  return {
    counts: `
      select count(*) filter (where finished_at is null) as live, count(*) filter (where finished_at is not null) as ended,
             (select count(*) from ${table("steps")}) as steps, min(created_at) as "oldestAt", max(created_at) as "newestAt"
      from ${table("tasks")}`,
    strays: `
      select count(*) filter (where ${none("inputs")}) as "withoutInput",
             count(*) filter (where finished_at is not null and ${none("outcomes")}) as "endedWithoutOutcome",
             count(*) filter (where finished_at is null and not ${none("outcomes")}) as "liveWithOutcome",
             ${strays("inputs")} + ${strays("outcomes")} as "ofNoTask"
      from ${table("tasks")} as t`,
  };
}

export function problemsOf(strays: Strays): string[] {
  const cure = "restore a backup, or remove these tasks";
  const say = (count: number, what: string) => (count === 0 ? [] : [`${count} ${what}: ${cure}.`]);
  return [
    ...say(strays.withoutInput, "tasks have lost their input"),
    ...say(strays.endedWithoutOutcome, "ended tasks have lost their outcome"),
    ...say(strays.liveWithOutcome, "live tasks have an outcome already"),
    ...say(strays.ofNoTask, "inputs and outcomes belong to no task"),
  ];
}

export function problemOfSchema({ version, known }: StoreFacts["schema"]): string[] {
  if (version === known) return [];
  const what = version === 0 ? "It has no schema yet" : `Its schema is ${version}, and this program's is ${known}`;
  return [`${what}: \`${thisProgram.name} store migrate\` brings it up to date.`];
}

export function problemOfCopy(source: string | undefined): string[] {
  return source === undefined
    ? []
    : [`It holds an unfinished copy of ${source}: run the same \`${thisProgram.name} store copy\` again.`];
}
