import { defineCommand } from "meanwhile";
import { z } from "zod";
import { limitsOf } from "../_pack/limits.ts";
import { readName } from "../_pack/paths.ts";
import { openReach } from "../_pack/reach.ts";
import { reasonOf } from "../_pack/reason.ts";
import { hiddenField, type Trouble, Troubles, troubleFields } from "../_pack/trouble.ts";
import { countQuickly } from "../_pack/walk.ts";
import { type Cache, withCache } from "./_cache.ts";
import { engineNames } from "./_engines.ts";
import { matchFiles, readPattern } from "./_match.ts";
import { transformFile, type Wish } from "./_transform.ts";

/** So many files are one step: after a crash, at most these are looked at again. */
const filesAStep = 20;

/** Until history knows better: a text file takes a few milliseconds, a PDF of many pages a second. */
const filesPerSecond = 50;

interface StepResult {
  readonly transformed: number;
  readonly cached: number;
  readonly characters: number;
  readonly errors: readonly Trouble[];
}

export default defineCommand({
  summary: "Turn many files into plain text, into the cache",
  description:
    "Takes a glob, e.g. docs/**/*.pdf; quote it in a shell. What is in the cache is not made again; a run that was interrupted goes on where it was.",
  input: z.object({
    glob: z.string().describe("Which files: * and ? within a name, ** across folders, {a,b}, [a-z]"),
    engine: z
      .enum(["auto", ...engineNames])
      .default("auto")
      .describe("How to read them; auto goes by each file's ending"),
    links: z.boolean().default(false).describe("Keep the addresses of links behind their words (html, docx)"),
    limit: z.number().int().min(1).max(50_000).default(10_000).describe("More files than this are refused"),
    max_mb: z.number().int().min(1).max(512).default(64).describe("Larger files are reported and left out"),
  }),
  output: z.object({
    files_matched: z.number().int(),
    files_transformed: z.number().int(),
    files_cached: z.number().int(),
    characters: z.number().int(),
    ...hiddenField,
    ...troubleFields,
    duration_seconds: z.number(),
  }),
  long: true,
  estimate: ({ glob, limit }, call) => {
    const { folder } = readPattern(glob, openReach(call));
    return (
      Math.min(limit, countQuickly(folder, { recursive: glob.includes("/") || glob.includes("**") })) / filesPerSecond
    );
  },
  effects: "write",
  idempotent: true,
  examples: ['"papers/**/*.{pdf,docx}"', '"~/notes/*.md"'],
  summarize: ({ files_matched, files_cached, errors_total }) =>
    `${files_matched} files, ${files_cached} of them from the cache, ${errors_total} failed`,
  async run({ glob, engine, links, limit, max_mb }, task) {
    const startedAt = performance.now();
    const reach = openReach(task);
    const pattern = readPattern(glob, reach);
    const troubles = new Troubles();
    let passedOver = 0;
    const files = await task.step("list", () =>
      matchFiles(pattern, {
        home: task.home,
        reach,
        limit,
        signal: task.signal,
        onError: (file, error) => troubles.add(file, error),
        onHidden: () => passedOver++,
      }),
    );
    const hidden = await task.step("hidden", () => passedOver);
    task.announce(`${files.length} files to transform`);
    const limits = limitsOf(task.config);
    const wish: Wish = {
      engine,
      options: { links },
      maxBytes: max_mb * 1024 * 1024,
      reach,
      limits,
      signal: task.signal,
    };
    let counts = { transformed: 0, cached: 0, characters: 0 };
    await withCache(task.home, async (cache) => {
      await cache.sweep(task.signal);
      for (let from = 0; from < files.length; from += filesAStep) {
        const group = files.slice(from, from + filesAStep);
        const onFile = (done: number, file: string) =>
          task.progress({ done: from + done, total: files.length, message: file });
        const result = await task.step(`files ${from + 1}`, () => transformGroup(cache, group, wish, onFile));
        for (const { path, reason } of result.errors) troubles.add(path, reason);
        counts = {
          transformed: counts.transformed + result.transformed,
          cached: counts.cached + result.cached,
          characters: counts.characters + result.characters,
        };
        task.progress({
          done: from + group.length,
          total: files.length,
          message: `${from + group.length} of ${files.length} files`,
        });
      }
    });
    return {
      files_matched: files.length,
      files_transformed: counts.transformed,
      files_cached: counts.cached,
      characters: counts.characters,
      hidden,
      ...troubles.toOutput(),
      duration_seconds: Math.round(performance.now() - startedAt) / 1000,
    };
  },
});

async function transformGroup(
  cache: Cache,
  files: readonly string[],
  wish: Wish,
  onFile: (done: number, file: string) => void,
): Promise<StepResult> {
  const result = { transformed: 0, cached: 0, characters: 0, errors: [] as Trouble[] };
  for (const [at, file] of files.entries()) {
    onFile(at, file);
    wish.signal.throwIfAborted();
    try {
      const { text, isCached } = await transformFile(cache, readName(file), wish);
      if (isCached) result.cached++;
      else result.transformed++;
      result.characters += text.length;
    } catch (error) {
      wish.signal.throwIfAborted();
      result.errors.push({ path: file, reason: reasonOf(error) });
    }
    // A turn for everybody else between two files.
    await new Promise(setImmediate);
  }
  if (result.transformed > 0) cache.shrink();
  return result;
}
