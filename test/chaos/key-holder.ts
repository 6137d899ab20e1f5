import { appendFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createApiKey } from "../../src/auth/api-key.ts";
import type { KeyStore, StoredKey } from "../../src/auth/key-store.ts";
import { isStoreError } from "../../src/errors.ts";
import { readLines } from "./check.ts";

/** One step of a key's life: written before it is asked for, and once more when it is acknowledged. */
interface KeyLine {
  readonly id: string;
  readonly step: "add" | "rotate" | "revoke";
  readonly isAcknowledged: boolean;
  /** Of the secret that the step gives the key. */
  readonly hash?: string;
}

const project = "chaos";
const fileIn = (folder: string) => path.join(folder, "keys.jsonl");

/** Adds API keys, rotates some and revokes some, until its process ends. */
export async function holdKeys(keys: KeyStore, folder: string, random: () => number): Promise<never> {
  for (;;) {
    await wait(100 + random() * 300);
    await liveOnce(keys, folder, random).catch((error: unknown) => {
      // The database is away, or the answer was lost: the step is in doubt.
      if (!isStoreError(error)) throw error;
    });
  }
}

async function liveOnce(keys: KeyStore, folder: string, random: () => number): Promise<void> {
  const { id, hash } = createApiKey();
  const take = async (step: KeyLine["step"], given: string | undefined, act: () => Promise<unknown>) => {
    const line = { id, step, ...(given !== undefined && { hash: given }) };
    const note = (isAcknowledged: boolean) =>
      appendFileSync(fileIn(folder), `${JSON.stringify({ ...line, isAcknowledged })}\n`);
    note(false);
    const done = await act();
    if (done === false || done === undefined) throw new Error(`${step} of the key ${id} found no key`);
    note(true);
    await wait(random() * 100);
  };
  const facts = { id, project, name: id, scopes: ["meanwhile:call"], commands: [] };
  await take("add", hash, () => keys.add({ ...facts, hash }));
  if (random() < 0.5) {
    const next = createApiKey(id).hash;
    await take("rotate", next, () => keys.rotate(project, id, { hash: next, overlapMs: 3_600_000 }));
  }
  if (random() < 0.5) await take("revoke", undefined, () => keys.revoke(project, id));
}

/** What is wrong with the keys in the store, by what was asked for and acknowledged. */
export async function checkKeys(keys: KeyStore, folder: string): Promise<{ lost: string[]; changed: string[] }> {
  const stored = new Map((await keys.list(project)).keys.map((key) => [key.id, key]));
  const lives = Map.groupBy(readLines<KeyLine>(fileIn(folder)), ({ id }) => id);
  const found = { lost: [] as string[], changed: [] as string[] };
  for (const [id, lines] of lives) {
    const key = stored.get(id);
    const last = lines.at(-1);
    const wasAdded = lines.some(({ step, isAcknowledged }) => step === "add" && isAcknowledged);
    const wasRevoked = last?.step === "revoke" && last.isAcknowledged;
    const mayBeGone = !wasAdded || last?.step === "revoke";
    if (wasRevoked && key !== undefined) found.changed.push(`the key ${id} was revoked, and is there`);
    if (!mayBeGone && key === undefined) found.lost.push(`the key ${id} was added, and is gone`);
    if (key !== undefined && !isExpected(key, lines)) found.changed.push(`the key ${id} has another secret`);
  }
  for (const id of stored.keys()) if (!lives.has(id)) found.changed.push(`nobody has added the key ${id}`);
  return found;
}

/** A key has the secret of its last acknowledged step, or of the step after that. Of a rotation it has both. */
function isExpected({ hash, earlier }: StoredKey, lines: readonly KeyLine[]): boolean {
  const secrets = lines.filter((line) => line.hash !== undefined);
  const acknowledged = secrets.findLast(({ isAcknowledged }) => isAcknowledged)?.hash;
  const asked = secrets.at(-1)?.hash;
  const first = secrets[0]?.hash;
  return (hash === acknowledged || hash === asked) && (hash === first || earlier?.hash === first);
}

/** How many keys were added, rotated and revoked, as it was acknowledged. */
export function countKeySteps(folder: string): Record<KeyLine["step"], number> {
  const lines = readLines<KeyLine>(fileIn(folder)).filter(({ isAcknowledged }) => isAcknowledged);
  const countOf = (wanted: KeyLine["step"]) => lines.filter(({ step }) => step === wanted).length;
  return { add: countOf("add"), rotate: countOf("rotate"), revoke: countOf("revoke") };
}
