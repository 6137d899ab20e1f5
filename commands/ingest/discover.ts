import { lstatSync } from "node:fs";
import { homedir } from "node:os";
import type Database from "better-sqlite3";
import { type CommandContext, defineCommand } from "meanwhile";
import { z } from "zod";
import { writeAtOnce } from "../_pack/database.ts";
import { compileGlob } from "../_pack/glob.ts";
import { folderOf, joinBytes, nameOf, showName } from "../_pack/paths.ts";
import { openReach, type Reach } from "../_pack/reach.ts";
import { Troubles, troubleFields } from "../_pack/trouble.ts";
import { pathOf, type WalkedFile, walk } from "../_pack/walk.ts";
import { folderSkipper } from "../transform/_skips.ts";
import { findAider } from "./_aider.ts";
import { belongingOf, hasProjects, type KnownPlace, knownPlaces, spansFolders } from "./_places.ts";
import { holdsOne, isOf, projectField, providerField, sessionField } from "./_select.ts";
import { withIngested } from "./_store.ts";

/** Some files of a place: all of them, those of a project, or one session. */
interface Group {
  readonly project: string;
  readonly session: string;
  path: Buffer;
  files: number;
  bytes: number;
  newest: bigint;
}

interface Found extends KnownPlace {
  readonly real: Buffer;
  readonly whole: Group;
  readonly groups: readonly Group[];
}

export default defineCommand({
  summary: "List the assistants' histories and notes on this machine",
  description: "Looks at names, sizes and dates only. Take what you want with ingest legacy <ids>.",
  input: z.object({
    by: z
      .enum(["source", "project", "session"])
      .default("source")
      .describe("One entry for each source, project or session"),
    providers: providerField,
    projects: projectField,
    sessions: sessionField,
    roots: z
      .array(z.string().min(1))
      .max(20)
      .default([])
      .describe("Other homes or folders of projects to look in, too"),
    limit: z.number().int().min(1).max(1000).default(200),
  }),
  output: z.object({
    sources: z.array(
      z.object({
        id: z.string(),
        provider: z.string(),
        assistant: z.string(),
        kind: z.enum(["history", "notes"]),
        root: z.string(),
        project: z.string(),
        session: z.string(),
        path: z.string(),
        files: z.number().int(),
        bytes: z.number().int(),
        newest: z.string().nullable(),
        can_ingest: z.boolean(),
      }),
    ),
    total: z.number().int(),
    ...troubleFields,
    duration_seconds: z.number(),
  }),
  long: true,
  estimate: () => 2,
  effects: "write",
  idempotent: true,
  aliases: ["discover_legacy_sources"],
  examples: ["", "--by project --providers claude-code"],
  summarize: ({ sources, total }) =>
    total === 0
      ? "Nothing known was found"
      : `${total} sources: ${sources.map(({ id }) => id).join(", ")}${total > sources.length ? ", …" : ""}`,
  async run({ by, providers, projects, sessions, roots, limit }, task) {
    const startedAt = performance.now();
    const troubles = new Troubles();
    const reach = openReach(task);
    const others = roots.map((root) => reach.resolve(root, "roots").path.toString());
    const places = [
      ...[...new Set([homedir(), ...others])].flatMap(knownPlaces),
      ...findAider({ ...task, reach, roots: others }),
    ];
    const wanted = places.filter((place) => isOf(place, providers));
    const found: Found[] = [];
    for (const [at, place] of wanted.entries()) {
      task.progress({ done: at, total: wanted.length, message: `Looking at ${place.assistant}` });
      const listed = await list(place, { ...task, by, reach, troubles });
      if (listed !== undefined && listed.whole.files > 0) found.push(listed);
    }
    await withIngested(task.home, (db) => remember(db, found, reach.isFree && providers.length === 0));
    const all = found.flatMap((place) =>
      place.groups
        .filter(({ project, session }) => holdsOne(project, projects) && holdsOne(session, sessions))
        .map((group) => toEntry(place, group, by)),
    );
    return {
      sources: all.slice(0, limit),
      total: all.length,
      ...troubles.toOutput(),
      duration_seconds: Math.round(performance.now() - startedAt) / 1000,
    };
  },
});

type By = "source" | "project" | "session";

function toEntry(
  { id, provider, assistant, kind, format, real }: Found,
  { project, session, path, files, bytes, newest }: Group,
  by: By,
) {
  const parts =
    by === "source"
      ? []
      : [hasProjects(id) ? project : "", by === "session" ? session : ""].filter((part) => part !== "");
  return {
    id: [id, ...parts].join("/"),
    provider,
    assistant,
    kind,
    root: showName(real),
    project,
    session,
    path: showName(path),
    files,
    bytes,
    newest: files === 0 ? null : new Date(Number(newest / 1_000_000n)).toISOString(),
    can_ingest: format !== "database",
  };
}

interface Listing extends Pick<CommandContext, "signal" | "home"> {
  readonly by: By;
  readonly reach: Reach;
  readonly troubles: Troubles;
}

/** Counts a place's files; undefined when it may not be looked into. */
async function list(place: KnownPlace, { signal, home, by, reach, troubles }: Listing): Promise<Found | undefined> {
  let real: Buffer;
  try {
    real = reach.resolve(place.path).path;
  } catch (error) {
    // Which assistants somebody uses, and what their vaults are called, is nothing for a client that may not look
    // there.
    if (reach.isFree) troubles.add(place.path, error);
    return undefined;
  }
  const whole: Group = { project: place.project, session: "", path: real, files: 0, bytes: 0, newest: 0n };
  const groups = new Map<string, Group>();
  const isFile = place.pattern === "";
  const takes = isFile ? () => true : compileGlob(place.pattern);
  const below = (folder: Buffer, name: Buffer) =>
    isFile ? "" : showName(joinBytes(folder, name).subarray(real.length + 1));
  const all = isFile
    ? filesAt(real)
    : walk(real, {
        recursive: spansFolders(place.pattern),
        signal,
        reach,
        skipsFolder: folderSkipper(home),
        skipsFile: (folder, name) => !takes(below(folder, name)),
        onError: (file, error) => troubles.add(showName(file), error),
      });
  for await (const file of all) {
    count(whole, file);
    if (by === "source") continue;
    const { project, session } = belongingOf(place, below(file.folder, file.name));
    const kept = by === "session" ? session : "";
    const key = `${project}\0${kept}`;
    const group = groups.get(key) ?? {
      project,
      session: kept,
      path: by === "session" || isFile ? pathOf(file) : file.folder,
      files: 0,
      bytes: 0,
      newest: 0n,
    };
    groups.set(key, group);
    count(group, file);
    if (group.files > 1) group.path = commonFolder(group.path, pathOf(file));
  }
  const newestFirst = [...groups.values()].sort((a, b) => (a.newest < b.newest ? 1 : a.newest > b.newest ? -1 : 0));
  return { ...place, real, whole, groups: by === "source" ? [whole] : newestFirst };
}

function count(group: Group, { size, mtimeNs }: WalkedFile): void {
  group.files++;
  group.bytes += size;
  if (mtimeNs > group.newest) group.newest = mtimeNs;
}

/** The one file, when it is one. */
function filesAt(file: Buffer): WalkedFile[] {
  const stat = lstatSync(file, { bigint: true, throwIfNoEntry: false });
  if (stat?.isFile() !== true) return [];
  return [
    { folder: folderOf(file), name: nameOf(file), size: Number(stat.size), mtimeNs: stat.mtimeNs, inode: stat.ino },
  ];
}

/** The innermost folder that holds both. */
function commonFolder(a: Buffer, b: Buffer): Buffer {
  let at = a;
  while (at.length > 1 && !(b.equals(at) || b.subarray(0, at.length + 1).equals(joinBytes(at, Buffer.alloc(0)))))
    at = folderOf(at);
  return at;
}

/**
 * What is listed is what `ingest legacy` knows: the list before is replaced, unless only a part of it could be seen.
 */
function remember(db: Database.Database, found: readonly Found[], isAll: boolean): void {
  const insert = db.prepare(
    `insert or replace into ingest_sources (id, assistant, kind, format, path, pattern, files, bytes, newest_at, found_at, provider, project)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  writeAtOnce(db, () => {
    if (isAll) db.exec("delete from ingest_sources");
    for (const { id, provider, assistant, kind, format, real, pattern, project, whole } of found)
      insert.run(
        id,
        assistant,
        kind,
        format,
        real,
        pattern,
        whole.files,
        whole.bytes,
        Number(whole.newest / 1_000_000n),
        Date.now(),
        provider,
        project,
      );
  });
}
