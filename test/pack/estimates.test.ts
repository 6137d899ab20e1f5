import path from "node:path";
import type { CallFacts } from "meanwhile";
import { expect, onTestFinished, test, vi } from "vitest";
import prune from "../../commands/database/prune.ts";
import discover from "../../commands/ingest/discover.ts";
import legacy from "../../commands/ingest/legacy.ts";
import sources from "../../commands/ingest/sources.ts";
import batch from "../../commands/transform/batch.ts";
import index from "../../commands/vault/index/index.ts";
import type { Command } from "../../src/command/command.ts";
import { Monitored } from "../fixtures/pack/monitored.ts";
import { inSession } from "../fixtures/pack/reaches.ts";
import { writeFiles } from "../helpers/home.ts";

/** What a command says of an input before it has ever run. */
function estimate(command: Command, input: object, call: CallFacts): unknown {
  return command.estimate?.(input as never, call);
}

test("every long command says at its first run how long it may take: files by a rate that it names", async () => {
  const monitored = new Monitored(
    Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`notes/d${at % 5}/${at}.md`, "x"])),
  );
  vi.stubEnv("HOME", monitored.root);
  onTestFinished(() => void vi.unstubAllEnvs());
  const notes = path.join(monitored.root, "notes");
  const here = inSession(monitored.root, monitored.home);
  expect(estimate(index, { path: notes }, here)).toBeCloseTo(200 / 1_000);
  expect(estimate(sources, { paths: [notes, path.join(notes, "d0/0.md")], recursive: true }, here)).toBeCloseTo(
    201 / 200,
  );
  expect(estimate(batch, { glob: `${notes}/**/*.md`, limit: 10_000 }, here)).toBeCloseTo(200 / 50);
  expect(estimate(batch, { glob: `${notes}/**/*.md`, limit: 50 }, here)).toBeCloseTo(1);
  // Nothing is recorded yet, and nothing is made to find that out.
  expect(estimate(prune, { domain: "all" }, here)).toBe(0);
  expect(estimate(legacy, { ids: ["all"] }, here)).toBe(0);
  await monitored.sync();
  expect(estimate(prune, { domain: "monitor" }, here)).toBeCloseTo(200 / 20_000);
  writeFiles(monitored.root, {
    ".claude/projects/p/a.jsonl": "{}",
    ".claude/projects/p/b.jsonl": "{}",
    ".codex/history.jsonl": "{}",
  });
  await monitored.data(discover);
  expect(estimate(legacy, { ids: ["claude-code"] }, here)).toBeCloseTo(2 / 200);
  expect(estimate(legacy, { ids: ["all"] }, here)).toBeCloseTo(3 / 200);
  expect(estimate(legacy, { ids: ["nope"] }, here)).toBe(0);
});
