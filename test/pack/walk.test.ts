import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { countQuickly, walk } from "../../commands/_pack/walk.ts";
import { anywhere } from "../fixtures/pack/reaches.ts";
import { shareAmongTests, temporaryFolder } from "../helpers/home.ts";

/** One folder with many files in it, and one more below it. */
const large = shareAmongTests(() => {
  const folder = temporaryFolder();
  for (let at = 0; at < 2_100; at++) writeFileSync(path.join(folder, `${at}`), "");
  mkdirSync(path.join(folder, "below"));
  writeFileSync(path.join(folder, "below/last"), "");
  return Buffer.from(folder);
});

test("a folder with many files is read in parts, with turns for others between them, and its files come by name", async () => {
  const root = await large();
  let turns = 0;
  let turnsBefore: number | undefined;
  let isOver = false;
  const turn = () => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const skipsFile = () => {
    turnsBefore ??= turns;
    return false;
  };
  const names: string[] = [];
  const onError = (_path: Buffer, error: unknown) => expect.unreachable(String(error));
  for await (const { name } of walk(root, { reach: anywhere, skipsFile, onError })) names.push(name.toString());
  isOver = true;
  expect(turnsBefore).toBeGreaterThanOrEqual(2);
  expect(names.length).toBe(2_101);
  expect(names).toEqual([...names.slice(0, -1).sort(), "last"]);
});

test("a walk that is stopped while it reads a folder ends with the reason, and not as a folder that failed", async () => {
  const root = await large();
  const stop = new AbortController();
  const onError = (_path: Buffer, error: unknown) => expect.unreachable(String(error));
  const files = walk(root, {
    reach: anywhere,
    signal: stop.signal,
    onFolder: () => stop.abort(new Error("enough")),
    onError,
  });
  await expect(files.next()).rejects.toThrow("enough");
});

test("a count for an estimate reads no large folder to its end once its time is over", async () => {
  const root = await large();
  const count = countQuickly(root, { recursive: false, budgetMs: 0 });
  expect([count >= 1_000, count < 2_100]).toEqual([true, true]);
  expect(countQuickly(root, { recursive: true, budgetMs: 60_000 })).toBe(2_101);
});
