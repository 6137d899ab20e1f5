import { defineCommand } from "meanwhile";
import { z } from "zod";
import type { GivenPath } from "../_pack/paths.ts";
import { openReach } from "../_pack/reach.ts";
import { countQuickly } from "../_pack/walk.ts";
import { cutFields, toOptions } from "./_input.ts";
import { filesPerSecond, IngestRun, ingestFields } from "./_run.ts";
import { withIngested } from "./_store.ts";

export default defineCommand({
  summary: "Make files and folders searchable",
  description:
    "Reads text, Markdown, HTML, PDF, Word, CSV, JSON and code into the index of ingest search. Files that have not changed are not read again; those that vanished are forgotten.",
  input: z.object({
    paths: z.array(z.string().min(1)).min(1).max(1_000).describe("Files and folders, e.g. ~/notes report.pdf"),
    recursive: z.boolean().default(true).describe("Take what lies in folders below, too"),
    ...cutFields,
  }),
  output: z.object(ingestFields),
  long: true,
  estimate: ({ paths, recursive }, call) => {
    const reach = openReach(call);
    return paths.reduce((sum, path) => sum + countPath(reach.resolve(path, "paths"), recursive), 0) / filesPerSecond;
  },
  effects: "write",
  idempotent: true,
  examples: ["~/notes", "docs report.pdf --chunk-size 800 --overlap 100"],
  summarize: ({ files_seen, files_ingested, files_unchanged, chunks_written, errors: [first], errors_total }) =>
    files_seen === 0 && first !== undefined
      ? `Nothing was ingested: ${first.path}: ${first.reason}`
      : `${files_ingested} files in ${chunks_written} chunks, ${files_unchanged} unchanged, ${errors_total} failed`,
  saysNo: ({ errors_total }) => errors_total > 0,
  async run(input, task) {
    const reach = openReach(task);
    const options = toOptions(input, reach);
    const places = input.paths.map((path) => reach.resolve(path, "paths"));
    const expected = places.reduce((sum, place) => sum + countPath(place, input.recursive), 0);
    task.announce(`Ingesting ${places.map(({ shown }) => shown).join(", ")}`);
    return await withIngested(task.home, async (db) => {
      const run = new IngestRun(db, options, task);
      for (const { path, shown, kind } of places) {
        if (kind === "missing") await run.forget(path);
        else if (kind === "other") run.fail(shown, "it is neither a file nor a folder");
        else
          await run.take(
            { path, kind, recursive: input.recursive, source: "", format: "files", takes: () => true },
            expected,
          );
      }
      return run.toOutput();
    });
  },
});

function countPath({ path, kind }: GivenPath, recursive: boolean): number {
  return kind === "folder" ? countQuickly(path, { recursive }) : 1;
}
