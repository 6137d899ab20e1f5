import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "../../src/clock.ts";
import { CommandError, isStoreError } from "../../src/errors.ts";
import { armFailpoint } from "../../src/failpoint.ts";
import { silentLog } from "../../src/log.ts";
import { Engine } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import { defaultLimits } from "../../src/task/limits.ts";
import { entryOf, type Kind } from "./commands.ts";
import { addressIn, openOn } from "./ground.ts";
import { holdKeys } from "./key-holder.ts";
import { Meddler } from "./meddler.ts";
import { createRandom, pick } from "./random.ts";

/** One acknowledged task. */
export interface Ack {
  readonly taskId: string;
  readonly key: string;
  readonly kind: Kind;
  readonly caller: string;
}

/**
 * Makes tasks for ever, answers, cancels and polls anybody's, and adds, rotates and revokes API keys: producer.ts <folder> <name> <seed>. What it is about to ask for is written down first, so that
 * its next life asks again with the same idempotency key; what was acknowledged is appended right after.
 */
armFailpoint(process.env.MEANWHILE_FAILPOINT, () => process.kill(process.pid, "SIGKILL"));
const [folder = "", name = "", seed = ""] = process.argv.slice(2);
const random = createRandom(Number(seed));
const { store, dispatcher } = await openOn(addressIn(folder));
const engine = new Engine({
  store,
  dispatcher,
  history: new History(store, systemClock),
  clock: systemClock,
  log: silentLog,
  project: "chaos",
  limits: { ...defaultLimits, localTasks: 16 },
});
const kinds: readonly Kind[] = [
  "safe",
  "safe",
  "safe",
  "safe",
  "unsafe",
  "unsafe",
  "unsafe",
  "flaky",
  "flaky",
  "steps",
  "steps",
  "steps",
  "asks",
  "asks",
];
const intentFile = path.join(folder, `intent-${name}.json`);

interface Intent {
  readonly key: string;
  readonly kind: Kind;
  readonly caller: string;
  readonly ms: number;
}

process.stdin.resume().on("end", () => process.exit(1));
process.once("SIGTERM", () => process.exit(0));
process.stdout.write("ready\n");
void meddle();
void holdKeys(store.shared.keys, folder, createRandom(Number(seed) + 2));
for (let intent = readIntent() ?? nextIntent(0), count = 1; ; count++) {
  await create(intent);
  intent = nextIntent(count);
  writeFileSync(intentFile, JSON.stringify(intent));
  await wait(random() * 40);
}

async function meddle(): Promise<void> {
  const meddler = new Meddler(engine, folder, createRandom(Number(seed) + 1));
  for (;;) {
    await wait(100 + random() * 100);
    await meddler.meddle();
  }
}

async function create({ key, kind, caller, ms }: Intent): Promise<void> {
  const entry = entryOf(kind);
  if (entry === undefined) throw new Error(`There is no command ${kind}.`);
  for (;;) {
    try {
      const { task } = await engine.create({
        entry,
        input: { key, ms },
        caller,
        reason: "chaos",
        isNew: true,
        idempotencyKey: key,
      });
      const ack: Ack = { taskId: task.taskId, key, kind, caller };
      appendFileSync(path.join(folder, "acks.jsonl"), `${JSON.stringify(ack)}\n`);
      return;
    } catch (error) {
      // It has as many as it may, or the database is away.
      if (!(error instanceof CommandError) && !isStoreError(error)) throw error;
      await wait(50);
    }
  }
}

function nextIntent(count: number): Intent {
  const kind = random() < 0.02 ? "isolated" : pick(random, kinds);
  // Some outlast their lease.
  const ms = random() < 0.2 ? 500 + random() * 1_000 : 20 + random() * 250;
  return {
    key: `${name}-${seed}-${count}`,
    kind,
    caller: pick(random, ["local:ada", "local:bob", "local:cleo"]),
    ms: Math.round(ms),
  };
}

function readIntent(): Intent | undefined {
  try {
    return JSON.parse(readFileSync(intentFile, "utf8")) as Intent;
  } catch {
    // The first life, or one that was killed in the middle of writing: nothing was asked for yet.
    return undefined;
  }
}
