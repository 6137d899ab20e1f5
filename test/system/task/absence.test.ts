import { renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Clock, systemClock } from "../../../src/clock.ts";
import type { Catalog } from "../../../src/command/catalog.ts";
import { silentLog } from "../../../src/log.ts";
import { system } from "../../../src/system/system.ts";
import { createIsolation } from "../../../src/task/isolated/isolation.ts";
import { Worker, type WorkerOptions } from "../../../src/task/worker.ts";
import { openEngine } from "../../helpers/engine.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { openLiveCatalog } from "../../helpers/live-catalog.ts";

const source = (more = "") => `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "x", ${more} run: () => ({ done: true }) });`;
const waits = "Waiting for the command do_it, which is gone or cannot be loaded right now; given up after a minute.";
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A folder with one command, the catalog that follows it, and workers on a store in memory. */
async function setUp(clock: Clock, text = source()) {
  const folder = temporaryFolder();
  const file = path.join(writeFiles(folder, { "do/it.ts": text }), "do/it.ts");
  const catalog = await openLiveCatalog({
    folders: [folder],
    toolPrefix: "",
    log: silentLog,
    clock: systemClock,
    isBundled: () => false,
  });
  const { store, engine, facts } = openEngine(clock);
  const start = (more: Partial<WorkerOptions> = {}) => {
    const worker = new Worker({ ...facts, find: (name) => catalog.get(name), ...more });
    worker.start();
    onTestFinished(() => worker.stop(0));
  };
  const entry = catalog.get("do_it");
  if (entry === undefined) throw new Error("There is no command do_it.");
  const { taskId } = (await engine.create({ entry, input: {}, caller: "local:ada", reason: "test" })).task;
  onTestFinished(async () => {
    catalog.close();
    await store.close();
  });
  return { file, catalog, start, get: () => engine.get("local:ada", taskId), store, taskId };
}

/** Changes a file, and waits until the catalog has noticed. */
async function change(catalog: Catalog, act: () => void): Promise<void> {
  const changed = Promise.withResolvers<void>();
  const stop = catalog.onChange(() => changed.resolve());
  act();
  await changed.promise;
  stop();
}

/** Lets whole seconds pass, and what they bring happen. */
async function pass(clock: FakeClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    clock.advance(1_000);
    for (let n = 0; n < 5; n++) await turn();
  }
}

test("a queued task whose command file is gone for 30 s, and half-written for 29 more, waits, says so, and goes on when it is back", async () => {
  const clock = new FakeClock();
  const { file, catalog, start, get } = await setUp(clock);
  await change(catalog, () => renameSync(file, `${file}.aside`));
  start();
  await pass(clock, 30);
  expect(await get()).toMatchObject({ status: "queued", attempts: 0, statusMessage: waits });
  await change(catalog, () => writeFileSync(file, source().slice(0, 60)));
  await pass(clock, 29);
  const waiting = await get();
  expect(waiting).toMatchObject({ status: "queued", attempts: 0, statusMessage: waits });
  expect(waiting.version, "a wait of a minute is news once").toBe(3);
  await change(catalog, () => renameSync(`${file}.aside`, file));
  await pass(clock, 1);
  expect(await get()).toMatchObject({
    status: "completed",
    attempts: 1,
    statusMessage: undefined,
    outcome: { data: { done: true } },
  });
});

test("a recovering task whose command file stays away for 60 s ends, and says that it is no longer there", async () => {
  const clock = new FakeClock();
  const { file, catalog, start, get, store, taskId } = await setUp(clock, source("idempotent: true,"));
  await store.claim({ project: "p", worker: "dead", leaseMs: 1, taskId });
  await store.interrupt("dead");
  await change(catalog, () => rmSync(file));
  start();
  await pass(clock, 59);
  expect(await get()).toMatchObject({ status: "queued", crashes: 1, statusMessage: waits });
  await pass(clock, 2);
  expect(await get()).toMatchObject({
    status: "failed",
    statusMessage: "The command do_it is no longer there.",
    outcome: { cause: "command" },
  });
});

test("a process of its own that finds the file half-written waits for the rest, though the catalog has not noticed", async () => {
  const { file, catalog, start, get } = await setUp(systemClock, source('isolation: "process",'));
  const entry = catalog.get("do_it");
  const childFile = path.resolve(import.meta.dirname, "../../../src/task/isolated/child-process.ts");
  // The catalog keeps what it has loaded; the child reads what is there now.
  writeFileSync(file, source().slice(0, 60));
  start({
    find: () => entry,
    runIsolated: createIsolation({ clock: systemClock, childFile, maxChildren: 1, killGroup: system.killGroup }),
  });
  await vi.waitFor(
    async () => expect(await get()).toMatchObject({ status: "queued", attempts: 0, statusMessage: waits }),
    { timeout: 30_000 },
  );
  writeFileSync(file, source('isolation: "process",'));
  await vi.waitFor(
    async () => expect(await get()).toMatchObject({ status: "completed", outcome: { data: { done: true } } }),
    { timeout: 30_000 },
  );
});
