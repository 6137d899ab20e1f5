import { defineCommand } from "meanwhile";
import { z } from "zod";
import { compileGlob } from "../_pack/glob.ts";
import { showName } from "../_pack/paths.ts";
import { openReach } from "../_pack/reach.ts";
import { cutFields, toOptions } from "./_input.ts";
import { spansFolders } from "./_places.ts";
import { filesPerSecond, IngestRun, ingestFields } from "./_run.ts";
import { countListed, projectField, providerField, selectSources, sessionField } from "./_select.ts";
import { withIngested } from "./_store.ts";

export default defineCommand({
  summary: "Make histories and notes that ingest discover listed searchable",
  description:
    "Run ingest discover first: it lists the ids. From histories only what was said is taken, not the calls of tools.",
  input: z.object({
    ids: z
      .array(z.string().min(1))
      .min(1)
      .max(100)
      .describe("Which sources, e.g. claude-code codex/<session> claude-code/<project>, or all"),
    providers: providerField,
    projects: projectField,
    sessions: sessionField,
    roots: z.array(z.string().min(1)).max(100).default([]).describe("Only what lies below these folders"),
    ...cutFields,
  }),
  output: z.object({ sources: z.array(z.string()), ...ingestFields }),
  long: true,
  estimate: ({ ids }, { home }) => countListed(home, ids) / filesPerSecond,
  effects: "write",
  idempotent: true,
  aliases: [{ name: "ingest_legacy_sources", arguments: { selected_source_ids: "ids" } }],
  examples: ["claude-code", "codex obsidian-Notes", "all --projects website"],
  summarize: ({ sources, files_ingested, chunks_written, files_unchanged }) =>
    `${sources.join(", ")}: ${files_ingested} files in ${chunks_written} chunks, ${files_unchanged} unchanged`,
  saysNo: ({ errors_total }) => errors_total > 0,
  async run({ ids, providers, projects, sessions, roots, ...cut }, task) {
    return await withIngested(task.home, async (db) => {
      const reach = openReach(task);
      const selected = selectSources(db, ids, {
        providers,
        projects,
        sessions,
        roots: roots.map((root) => reach.locate(root, "roots")),
      });
      const expected = selected.reduce((sum, { row }) => sum + row.files, 0);
      task.announce(`Ingesting ${selected.map(({ label }) => label).join(", ")}`);
      const run = new IngestRun(db, toOptions(cut, reach), task);
      for (const { label, row, isPart, takes } of selected) {
        // What was allowed when it was listed may not be today.
        const { path, kind } = reach.resolve(showName(row.path), "ids");
        const format = row.format === "conversation" ? row.format : ("files" as const);
        const fits = row.pattern === "" ? () => true : compileGlob(row.pattern);
        const before = run.seen;
        if (kind === "folder" && row.pattern !== "") {
          const recursive = spansFolders(row.pattern);
          await run.take(
            { path, kind, source: row.id, format, recursive, takes: (below) => fits(below) && takes(below) },
            expected,
          );
        } else if (kind === "file" && row.pattern === "") {
          if (takes(""))
            await run.take({ path, kind, source: row.id, format, recursive: false, takes: fits }, expected);
        } else await run.forget(path);
        if (isPart && ids.some((id) => id.includes("/")) && run.seen === before)
          run.fail(label, "it has no such project or session; `ingest discover --by session` lists them");
      }
      return { sources: selected.map(({ label }) => label), ...run.toOutput() };
    });
  },
});
