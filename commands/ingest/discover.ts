import type Database from "better-sqlite3";
import { type CommandContext, defineCommand } from "meanwhile";
import { z } from "zod";
import { writeAtOnce } from "../_pack/database.ts";
import { compileGlob } from "../_pack/glob.ts";
import { joinBytes, showName } from "../_pack/paths.ts";
import { openReach, type Reach } from "../_pack/reach.ts";
import { Troubles, troubleFields } from "../_pack/trouble.ts";
import { walk } from "../_pack/walk.ts";
import { folderSkipper } from "../transform/_skips.ts";
import { type KnownPlace, knownPlaces, spansFolders } from "./_places.ts";
import { withIngested } from "./_store.ts";

interface Found extends KnownPlace {
  readonly real: Buffer;
  readonly files: number;
  readonly bytes: number;
  readonly newestAt: number | null;
}

export default defineCommand({
  summary: "List the assistants' histories and notes on this machine",
  description: "Looks at names, sizes and dates only; no file is opened. Take what you want with ingest legacy <ids>.",
  output: z.object({
    sources: z.array(
      z.object({
        id: z.string().describe("For ingest legacy"),
        assistant: z.string(),
        kind: z.enum(["history", "notes"]),
        path: z.string(),
        files: z.number().int(),
        bytes: z.number().int(),
        newest: z.string().nullable(),
        can_ingest: z.boolean().describe("False for databases of other programs"),
      }),
    ),
    ...troubleFields,
    duration_seconds: z.number(),
  }),
  long: true,
  estimate: () => 2,
  effects: "write",
  idempotent: true,
  aliases: ["discover_legacy_sources"],
  examples: [""],
  summarize: ({ sources }) => (sources.length === 0 ? "Nothing known was found" : `${sources.length} sources: ${sources.map(({ id }) => id).join(", ")}`),
  async run(_input, task) {
    const startedAt = performance.now();
    const troubles = new Troubles();
    const places = knownPlaces();
    const found: Found[] = [];
    const reach = openReach(task);
    for (const [at, place] of places.entries()) {
      task.progress({ done: at, total: places.length, message: `Looking at ${place.assistant}` });
      const listed = await list(place, { ...task, reach, troubles });
      if (listed !== undefined && listed.files > 0) found.push(listed);
    }
    await withIngested(task.home, (db) => remember(db, found, reach.isFree));
    return {
      sources: found.map(({ id, assistant, kind, real, files, bytes, newestAt, format }) => ({
        id,
        assistant,
        kind,
        path: showName(real),
        files,
        bytes,
        newest: newestAt === null ? null : new Date(newestAt).toISOString(),
        can_ingest: format !== "database",
      })),
      ...troubles.toOutput(),
      duration_seconds: Math.round(performance.now() - startedAt) / 1000,
    };
  },
});

interface Listing extends Pick<CommandContext, "signal" | "home"> {
  readonly reach: Reach;
  readonly troubles: Troubles;
}

/** Counts a place's files; undefined when it may not be looked into. */
async function list(place: KnownPlace, { signal, home, reach, troubles }: Listing): Promise<Found | undefined> {
  let real: Buffer;
  try {
    real = reach.resolve(place.path).path;
  } catch (error) {
    troubles.add(place.path, error);
    return undefined;
  }
  const takes = compileGlob(place.pattern);
  let files = 0;
  let bytes = 0;
  let newest = 0n;
  const all = walk(real, {
    recursive: spansFolders(place.pattern),
    signal,
    reach,
    skipsFolder: folderSkipper(home),
    skipsFile: (folder, name) => !takes(showName(joinBytes(folder, name).subarray(real.length + 1))),
    onError: (file, error) => troubles.add(showName(file), error),
  });
  for await (const { size, mtimeNs } of all) {
    files++;
    bytes += size;
    if (mtimeNs > newest) newest = mtimeNs;
  }
  return { ...place, real, files, bytes, newestAt: files === 0 ? null : Number(newest / 1_000_000n) };
}

/** What is listed is what `ingest legacy` knows: the list before is replaced, unless only a part of it could be seen. */
function remember(db: Database.Database, found: readonly Found[], isAll: boolean): void {
  const insert = db.prepare(
    `insert or replace into ingest_sources (id, assistant, kind, format, path, pattern, files, bytes, newest_at, found_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  writeAtOnce(db, () => {
    if (isAll) db.exec("delete from ingest_sources");
    for (const { id, assistant, kind, format, real, pattern, files, bytes, newestAt } of found)
      insert.run(id, assistant, kind, format, real, pattern, files, bytes, newestAt, Date.now());
  });
}
