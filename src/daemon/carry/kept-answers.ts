import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { type Home, writePrivately } from "../../paths.ts";
import { system } from "../../system/system.ts";
import { fieldsOf, isObject } from "../../wire/json.ts";
import { modernRevision } from "../../wire/revisions.ts";

/**
 * What a daemon answers to every client of a revision alike: its greeting and its lists. It leaves them behind in a
 * file of its key, for fronts that come while the next one is still starting.
 *
 * The first line says whose they are and where each one is; every other line is the text of one result.
 */
export type KeptAnswers = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** In place of the revision, for clients of 2026-07-28 that declare the tasks extension. */
export const modernWithTasks = `${modernRevision} with tasks`;

/**
 * Named apart from its answers, so that those of another version, or under another key, are never taken for its own.
 */
export interface Whose {
  readonly key: string;
  readonly version: string;
}

interface Index extends Whose {
  /** By revision and method: the number of a line. */
  readonly lines: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

const maxBytes = 2 * 1024 * 1024;
const maxFiles = 20;
const ending = ".answers";

export const answersFile = (home: Home, key: string): string => path.join(home.runFolder, `${key}${ending}`);

/** Finds the text of one kept answer. */
export type FindAnswer = (revision: string, method: string) => string | undefined;

/** Undefined where nothing was left behind, or nothing that can be trusted. */
export function readAnswers(home: Home, { key, version }: Whose): FindAnswer | undefined {
  try {
    const [head = "", ...texts] = readOwn(answersFile(home, key)).split("\n");
    const index = JSON.parse(head) as Index;
    if (index.key !== key || index.version !== version || !isObject(index.lines)) return undefined;
    return (revision, method) => {
      const text = texts[Number(fieldsOf(index.lines[revision])[method])];
      return text !== undefined && isResult(text) ? text : undefined;
    };
  } catch {
    return undefined;
  }
}

/** False for what was cut off or damaged. */
function isResult(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/** The text of a file that is this user's alone; a link may lead anywhere. */
function readOwn(file: string): string {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile() || !system.isPrivate(stat) || stat.size > maxBytes)
      throw new Error(`${file} is not to be trusted`);
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}

/** Leaves them behind in place of those that were there; where they are too many to be kept, nothing is left. */
export function writeAnswers(home: Home, { key, version }: Whose, answers: KeptAnswers): void {
  const file = answersFile(home, key);
  const texts: string[] = [];
  const numberOf = (text: string) => (texts.includes(text) ? texts.indexOf(text) : texts.push(text) - 1);
  const numbered = (kept: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(kept).map(([method, text]) => [method, numberOf(text)]));
  const lines = Object.fromEntries(Object.entries(answers).map(([revision, kept]) => [revision, numbered(kept)]));
  const index: Index = { key, version, lines };
  const text = [JSON.stringify(index), ...texts].join("\n");
  if (Buffer.byteLength(text) > maxBytes) rmSync(file, { force: true });
  else writePrivately(file, text);
  removeOldest(home.runFolder);
}

/** Projects come and go; those that were served last are remembered. */
function removeOldest(folder: string): void {
  const files = readdirSync(folder).filter((name) => name.endsWith(ending));
  if (files.length <= maxFiles) return;
  const byAge = files
    .map((name) => path.join(folder, name))
    .map((file) => ({ file, at: statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0 }));
  for (const { file } of byAge.sort((a, b) => b.at - a.at).slice(maxFiles)) rmSync(file, { force: true });
}
