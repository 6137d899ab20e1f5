import type Database from "better-sqlite3";
import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { compileGlob } from "../_pack/glob.ts";
import { showName } from "../_pack/paths.ts";
import { openReach } from "../_pack/reach.ts";
import { cutFields, toOptions } from "./_input.ts";
import { spansFolders } from "./_places.ts";
import { IngestRun, ingestFields } from "./_run.ts";
import { withIngested } from "./_store.ts";

interface SourceRow {
  readonly id: string;
  readonly format: "conversation" | "files" | "database";
  readonly path: Buffer;
  readonly pattern: string;
  readonly files: number;
}

export default defineCommand({
  summary: "Make histories and notes that ingest discover listed searchable",
  description: "Run ingest discover first: it lists the ids. From histories only what was said is taken, not the calls of tools.",
  input: z.object({
    ids: z.array(z.string().min(1)).min(1).max(100).describe("Which sources, e.g. claude-code obsidian-Notes"),
    ...cutFields,
  }),
  output: z.object({ sources: z.array(z.string()), ...ingestFields }),
  long: true,
  effects: "write",
  idempotent: true,
  aliases: [{ name: "ingest_legacy_sources", arguments: { selected_source_ids: "ids" } }],
  examples: ["claude-code", "codex obsidian-Notes"],
  summarize: ({ sources, files_ingested, chunks_written, files_unchanged }) =>
    `${sources.join(", ")}: ${files_ingested} files in ${chunks_written} chunks, ${files_unchanged} unchanged`,
  saysNo: ({ errors_total }) => errors_total > 0,
  async run({ ids, ...cut }, task) {
    return await withIngested(task.home, async (db) => {
      const sources = [...new Set(ids)].map((id) => findSource(db, id));
      const expected = sources.reduce((sum, { files }) => sum + files, 0);
      task.announce(`Ingesting ${sources.map(({ id }) => id).join(", ")}`);
      const reach = openReach(task);
      const run = new IngestRun(db, toOptions(cut, reach), task);
      for (const { id, format, path, pattern } of sources) {
        // What was allowed when it was listed may not be today.
        const given = reach.resolve(showName(path), "ids");
        const how = {
          source: id,
          format: format === "conversation" ? format : ("files" as const),
          recursive: spansFolders(pattern),
          takes: compileGlob(pattern),
        };
        if (given.kind === "folder") await run.take({ path: given.path, kind: "folder", ...how }, expected);
        else await run.forget(given.path);
      }
      return { sources: sources.map(({ id }) => id), ...run.toOutput() };
    });
  },
});

function findSource(db: Database.Database, id: string): SourceRow {
  const row = db.prepare("select id, format, path, pattern, files from ingest_sources where id = ?").get(id) as SourceRow | undefined;
  if (row?.format === "database")
    throw new CommandError(`\`ids\` ${id} is another program's database, which is not read; export it from there and use \`ingest sources\`.`);
  if (row !== undefined) return row;
  const known = db.prepare("select id from ingest_sources where format <> 'database' order by id").pluck().all() as string[];
  throw new CommandError(`\`ids\` ${id} has not been listed; ${known.length === 0 ? "run `ingest discover` first" : `known: ${known.join(", ")}`}.`);
}
