import { existsSync } from "node:fs";
import Database from "better-sqlite3";
import { CommandError } from "meanwhile";
import { z } from "zod";
import { packFile } from "../_pack/database.ts";
import { isInside } from "../_pack/paths.ts";
import { belongingOf, hasProjects, type KnownPlace } from "./_places.ts";

/** What both `discover` and `legacy` can be narrowed by. */
export const providerField = z
  .array(z.string().min(1))
  .max(100)
  .default([])
  .describe("Only these, e.g. claude-code, aider");
export const projectField = z.array(z.string().min(1)).max(100).default([]).describe("Parts of their names");
export const sessionField = z.array(z.string().min(1)).max(100).default([]).describe("Parts of their names");

/** A place that `ingest discover` has listed. */
export interface SourceRow {
  readonly id: string;
  readonly provider: string;
  readonly assistant: string;
  readonly project: string;
  readonly format: KnownPlace["format"];
  readonly path: Buffer;
  readonly pattern: string;
  readonly files: number;
}

/** A listed place, and which of its files are meant. */
export interface Selected {
  readonly label: string;
  readonly row: SourceRow;
  /** True when only some of its files are meant. */
  readonly isPart: boolean;
  takes(below: string): boolean;
}

export interface Filters {
  readonly providers: readonly string[];
  readonly projects: readonly string[];
  readonly sessions: readonly string[];
  readonly roots: readonly Buffer[];
}

/**
 * The places and files that were meant, by ids (`all`, `codex`, `claude-code/<project>/<session>`) and by what narrows
 * them.
 */
export function selectSources(db: Database.Database, ids: readonly string[], filters: Filters): Selected[] {
  const rows = readRows(db);
  const chosen = [...new Set(ids)].flatMap((id) => choose(rows, id));
  const fitting = chosen.filter(({ row }) => isOf(row, filters.providers) && isBelow(row.path, filters.roots));
  if (fitting.length === 0)
    throw new CommandError(
      "Nothing that was listed fits `ids`, `providers` and `roots` together; leave one of them out.",
    );
  const { projects, sessions } = filters;
  if (projects.length === 0 && sessions.length === 0) return fitting;
  return fitting.map((selected) => ({
    ...selected,
    isPart: true,
    takes(below) {
      const { project, session } = belongingOf(selected.row, below);
      return selected.takes(below) && holdsOne(project, projects) && holdsOne(session, sessions);
    },
  }));
}

/** How many files the ids stand for, as they were last listed; 0 where that cannot be told. */
export function countListed(home: string, ids: readonly string[]): number {
  if (!existsSync(packFile(home))) return 0;
  try {
    const db = new Database(packFile(home), { readonly: true, timeout: 1_000 });
    try {
      const rows = readRows(db);
      const chosen = new Set(ids.flatMap((id) => choose(rows, id)).map(({ row }) => row));
      return [...chosen].reduce((sum, { files }) => sum + files, 0);
    } finally {
      db.close();
    }
  } catch {
    return 0; // The run itself will say what is wrong.
  }
}

/** True for a provider that was asked for, by its id or its assistant's name; for all when none was. */
export function isOf(
  { id, provider, assistant }: Pick<KnownPlace, "id" | "provider" | "assistant">,
  wanted: readonly string[],
): boolean {
  const names = [id, provider, assistant].map((name) => name.toLowerCase());
  return wanted.length === 0 || wanted.some((name) => names.includes(name.toLowerCase()));
}

/** True when a name holds one of some texts, or none was asked for. */
export function holdsOne(name: string, parts: readonly string[]): boolean {
  return parts.length === 0 || parts.some((part) => name.toLowerCase().includes(part.toLowerCase()));
}

function isBelow(file: Buffer, roots: readonly Buffer[]): boolean {
  return roots.length === 0 || roots.some((root) => isInside(file, root));
}

function readRows(db: Database.Database): SourceRow[] {
  return db
    .prepare(
      "select id, coalesce(nullif(provider, ''), id) as provider, assistant, project, format, path, pattern, files from ingest_sources order by id",
    )
    .all() as SourceRow[];
}

function choose(rows: readonly SourceRow[], given: string): Selected[] {
  const [head = "", ...rest] = given.split("/");
  const usable = rows.filter(({ format }) => format !== "database");
  if (given === "all" && usable.length > 0) return usable.map((row) => toSelected(row, row.id, []));
  const byId = rows.filter(({ id }) => id === head);
  const found = byId.length > 0 ? byId : usable.filter(({ provider }) => provider === head);
  if (found.some(({ format }) => format === "database"))
    throw new CommandError(
      `\`ids\` ${head} is another program's database, which is not read; export it from there and use \`ingest sources\`.`,
    );
  if (found.length > 0) return found.map((row) => toSelected(row, [row.id, ...rest].join("/"), rest));
  const known = usable.map(({ id }) => id);
  throw new CommandError(
    `\`ids\` ${given} has not been listed; ${known.length === 0 ? "run `ingest discover` first" : `known: ${known.join(", ")}`}.`,
  );
}

/** What stands behind the id names a project and a session, or a session alone where there are no projects. */
function toSelected(row: SourceRow, label: string, rest: readonly string[]): Selected {
  const [first = "", second = ""] = rest;
  const [project, session] = hasProjects(row.id) ? [first, second] : ["", first];
  return {
    label,
    row,
    isPart: rest.length > 0,
    takes(below) {
      const has = belongingOf(row, below);
      return (project === "" || has.project === project) && (session === "" || has.session === session);
    },
  };
}
