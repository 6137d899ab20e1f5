import { expect, test } from "vitest";
import { createApiKey } from "../../src/auth/api-key.ts";
import { type Authentication, AuthenticationError, type TokenVerifier } from "../../src/auth/authentication.ts";
import type { KeyStore, NewKey } from "../../src/auth/key-store.ts";
import { createKeyVerifier } from "../../src/auth/key-verifier.ts";
import { callerKey } from "../../src/command/caller.ts";
import { type Logger, silentLog } from "../../src/log.ts";
import { MemoryKeys } from "../../src/store/memory-keys.ts";
import { FakeClock, settled, turns } from "../helpers/fake-clock.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** A verifier on a store that counts its reads and notes, and can be made slow or unreachable. */
function open({ skewMs = 0 } = {}) {
  const clock = new FakeClock(1_000 * hourMs);
  const keys = new MemoryKeys(() => clock.now() + skewMs);
  const counts = { opened: 0, reads: 0, notes: 0 };
  const trouble = { isAway: false, isSlowMs: 0 };
  const answer = async <T>(read: () => Promise<T>) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (trouble.isSlowMs > 0) clock.after(trouble.isSlowMs, resolve);
    else resolve();
    await promise;
    if (trouble.isAway) throw new Error("postgres://ada:secret@db is away");
    return await read();
  };
  const counted: KeyStore = {
    add: (key) => keys.add(key),
    rotate: (project, name, change) => keys.rotate(project, name, change),
    revoke: (project, name) => keys.revoke(project, name),
    async list(project) {
      counts.reads += 1;
      return await answer(() => keys.list(project));
    },
    async noteUse(project, id) {
      counts.notes += 1;
      await answer(() => keys.noteUse(project, id));
    },
  };
  const openKeys = async () => {
    counts.opened += 1;
    return counted;
  };
  const warnings: (readonly [string, object])[] = [];
  const log: Logger = { ...silentLog, warn: (text, facts = {}) => void warnings.push([text, facts]) };
  const verifier = createKeyVerifier({ openKeys, project: "home", clock, log });
  async function add(name = "ci", facts: Partial<NewKey> = {}) {
    const { id, key, hash } = createApiKey();
    const common = { id, name, hash, project: "home", scopes: ["meanwhile:call"], commands: [] };
    expect(await keys.add({ ...common, ...facts })).toBe(true);
    return { id, key };
  }
  /** What becomes of a text: the caller's key, or why it is refused. */
  const outcome = async (text: string) => {
    try {
      const { caller } = await settled(
        clock,
        Promise.resolve().then(() => verifier.verify(text)),
        100,
      );
      return callerKey(caller);
    } catch (error) {
      if (!(error instanceof AuthenticationError)) throw error;
      return error.kind;
    }
  };
  return { clock, keys, counts, trouble, verifier, add, outcome, warnings };
}

/** What becomes of a text: the caller's key, or why it is refused. */
async function outcomeOf(verifier: TokenVerifier, text: string): Promise<string> {
  try {
    return callerKey((await verifier.verify(text)).caller);
  } catch (error) {
    if (!(error instanceof AuthenticationError)) throw error;
    return error.kind;
  }
}

const messageOf = async (verify: () => unknown) => {
  try {
    await verify();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("It was expected to be refused.");
};

/** Another text that differs by its last character. */
const oneCharacterOff = (key: string) => `${key.slice(0, -1)}${key.endsWith("a") ? "b" : "a"}`;

test("accepts what begins like a key, and no other token", () => {
  const { verifier, counts } = open();
  const texts = ["mw_", "mw_x", createApiKey().key, "MW_x", "eyJ.a.b", "token-of-the-home", ""];
  expect(texts.map((text) => verifier.accepts(text))).toEqual([true, true, true, false, false, false, false]);
  expect(counts.opened).toBe(0);
});

test("the caller of a key has the key's ID, name and scopes; its patterns are the credential's", async () => {
  const { verifier, add, clock } = open();
  const scopes = ["meanwhile:read", "repo:admin"];
  const { id, key } = await add("ci", { scopes, commands: ["report_*"], expiresInMs: 90 * dayMs });
  const found = await verifier.verify(key);
  expect(found.caller).toEqual({ kind: "key", id, name: "ci", scopes, groups: [] });
  expect(found).toMatchObject({ commands: ["report_*"], scopesFrom: "the API key ci" });
  expect(found.validUntil).toBe(clock.now() + 90 * dayMs);
  const { key: plain } = await add("plain");
  clock.advance(2_000);
  const other = await verifier.verify(plain);
  expect([other.commands, other.validUntil]).toEqual([undefined, undefined]);
  expect(await other.isStillValid?.()).toBe(true);
});

test("a command that changes its caller's scopes changes no key's", async () => {
  const { verifier, add } = open();
  const { key } = await add();
  const { caller } = await verifier.verify(key);
  (caller.scopes as string[]).push("meanwhile:admin");
  expect((await verifier.verify(key)).caller.scopes).toEqual(["meanwhile:call"]);
});

test("unknown, revoked, expired and malformed keys get one and the same sentence, without a part of the key", async () => {
  const { verifier, keys, add, clock } = open();
  const [known, revoked, expired] = [await add(), await add("revoked"), await add("expired", { expiresInMs: hourMs })];
  await keys.revoke("home", "revoked");
  clock.advance(hourMs);
  const foreign = createApiKey();
  await keys.add({ ...foreign, name: "ci", project: "other", scopes: [], commands: [] });
  const texts = [
    ...[createApiKey().key, revoked.key, expired.key, foreign.key, oneCharacterOff(known.key)],
    ...[`mw_${known.id}_${createApiKey().key.slice(-43)}`, createApiKey(known.id).key, "mw_", `${known.key}x`],
  ];
  const sentences = new Set<string>();
  for (const text of texts) {
    const sentence = await settled(
      clock,
      messageOf(() => verifier.verify(text)),
      100,
    );
    for (const part of text.split("_").slice(1)) if (part !== "") expect(sentence).not.toContain(part);
    sentences.add(sentence);
  }
  expect([...sentences]).toEqual([
    "The API key is unknown, expired or revoked; `meanwhile keys add <name>` on the server's machine makes a new one.",
  ]);
});

test("a text without the form of a key is refused without the store", async () => {
  const { verifier, counts } = open();
  for (const text of ["mw_", "mw_a_b", `mw_${"x".repeat(100_000)}`])
    expect(() => verifier.verify(text)).toThrow(AuthenticationError);
  expect(counts).toMatchObject({ opened: 0, reads: 0 });
});

test("the store is read every 2 s, whatever the number of requests", async () => {
  const { verifier, counts, add, clock } = open();
  const { key } = await add();
  await Promise.all(Array.from({ length: 100 }, () => verifier.verify(key)));
  expect(counts.reads).toBe(1);
  clock.advance(1_999);
  // From the list: no promise, and no read.
  expect(verifier.verify(key)).not.toBeInstanceOf(Promise);
  expect(counts.reads).toBe(1);
  clock.advance(1);
  await Promise.all(Array.from({ length: 100 }, () => verifier.verify(key)));
  expect(counts.reads).toBe(2);
});

test("a flood of unknown keys costs one read a second, and known keys are verified meanwhile", async () => {
  const { verifier, counts, add, clock } = open();
  const { id, key } = await add();
  await verifier.verify(key);
  const startedAt = clock.now();
  for (let round = 0; round < 20; round++) {
    const flood = Array.from({ length: 200 }, () => outcomeOf(verifier, createApiKey().key));
    expect(await outcomeOf(verifier, key)).toBe(`key:${id}`);
    clock.advance(300);
    expect(new Set(await settled(clock, Promise.all(flood), 100))).toEqual(new Set(["invalid"]));
  }
  expect(counts.reads - 1).toBeLessThanOrEqual((clock.now() - startedAt) / 1_000);
});

test("a key that was added or rotated a moment ago is verified when the list is 1 s old", async () => {
  const { verifier, keys, counts, add, clock, outcome } = open();
  const first = await add();
  await verifier.verify(first.key);
  const startedAt = clock.now();
  const second = await add("laptop");
  const next = createApiKey(first.id);
  await keys.rotate("home", "ci", { hash: next.hash, overlapMs: 0 });
  expect(await Promise.all([outcome(second.key), outcome(next.key)])).toEqual([`key:${second.id}`, `key:${first.id}`]);
  expect(clock.now() - startedAt).toBe(1_000);
  expect(counts.reads).toBe(2);
});

test("more than 100 unknown keys do not wait for a newer list", async () => {
  const { verifier, add, clock } = open();
  await verifier.verify((await add()).key);
  const waiting = Array.from({ length: 100 }, () => outcomeOf(verifier, createApiKey().key));
  expect(() => verifier.verify(createApiKey().key)).toThrow(AuthenticationError);
  expect(new Set(await settled(clock, Promise.all(waiting), 100))).toEqual(new Set(["invalid"]));
  const next = outcomeOf(verifier, createApiKey().key);
  expect(await settled(clock, next, 100)).toBe("invalid");
});

test("a revoked key is refused 2 s later at the latest, in new requests and in open streams", async () => {
  const { verifier, keys, add, clock, outcome } = open();
  const { key } = await add();
  const { isStillValid } = await verifier.verify(key);
  await keys.revoke("home", "ci");
  clock.advance(1_999);
  expect(isStillValid?.()).toBe(true);
  clock.advance(1);
  expect(await isStillValid?.()).toBe(false);
  expect(await outcome(key)).toBe("invalid");
});

test("a key of the same name that was added after a revocation is another caller's", async () => {
  const { verifier, keys, add, clock, outcome } = open();
  const first = await add();
  const { isStillValid } = await verifier.verify(first.key);
  await keys.revoke("home", "ci");
  const second = await add();
  clock.advance(2_000);
  expect(await outcome(second.key)).toBe(`key:${second.id}`);
  expect(second.id).not.toBe(first.id);
  expect(await isStillValid?.()).toBe(false);
  expect(await outcome(first.key)).toBe("invalid");
});

test("an expired key is refused at that millisecond, also where the list is fresh", async () => {
  const { verifier, add, clock, outcome } = open();
  const { id, key } = await add("ci", { expiresInMs: dayMs });
  clock.advance(dayMs - 1_000);
  const { isStillValid, validUntil } = await verifier.verify(key);
  expect(validUntil).toBe(clock.now() + 1_000);
  clock.advance(999);
  expect(isStillValid?.()).toBe(true);
  expect(await outcome(key)).toBe(`key:${id}`);
  clock.advance(1);
  expect(isStillValid?.()).toBe(false);
  expect(await outcome(key)).toBe("invalid");
});

test("after a rotation both secrets are one caller's; the earlier one ends with the overlap", async () => {
  const { verifier, keys, add, clock, outcome } = open();
  const { id, key } = await add("ci", { expiresInMs: 90 * dayMs });
  const before = await verifier.verify(key);
  const next = createApiKey(id);
  await keys.rotate("home", "ci", { hash: next.hash, overlapMs: dayMs });
  clock.advance(2_000);
  expect([await outcome(key), await outcome(next.key)]).toEqual([`key:${id}`, `key:${id}`]);
  const [earlier, later] = [await verifier.verify(key), await verifier.verify(next.key)];
  expect([earlier.validUntil, later.validUntil]).toEqual([
    clock.now() + dayMs - 2_000,
    clock.now() + 90 * dayMs - 2_000,
  ]);
  clock.advance(dayMs - 2_000);
  expect([await outcome(key), await outcome(next.key)]).toEqual(["invalid", `key:${id}`]);
  const stillValid = async ({ isStillValid }: Authentication) => await isStillValid?.();
  expect(await Promise.all([before, earlier, later].map(stillValid))).toEqual([false, false, true]);
});

test("times are the store's: a clock of this machine that is 2 minutes behind changes nothing", async () => {
  const { verifier, add, clock, outcome } = open({ skewMs: 120_000 });
  const { key } = await add("ci", { expiresInMs: 60_000 });
  const { validUntil } = await verifier.verify(key);
  expect(validUntil).toBe(clock.now() + 60_000);
  clock.advance(60_000);
  expect(await outcome(key)).toBe("invalid");
});

test("while the store is away a list serves for 5 s; then keys cannot be verified, and none is a caller", async () => {
  const { verifier, counts, trouble, add, clock, outcome } = open();
  const { id, key } = await add();
  const { isStillValid } = await verifier.verify(key);
  trouble.isAway = true;
  clock.advance(4_999);
  expect(await outcome(key)).toBe(`key:${id}`);
  clock.advance(1);
  expect(await outcome(key)).toBe("unavailable");
  expect(await outcome(createApiKey().key)).toBe("unavailable");
  await expect(async () => await isStillValid?.()).rejects.toMatchObject({ kind: "unavailable" });
  const sentence = await messageOf(() => verifier.verify(key));
  expect(sentence).toBe("The API key cannot be checked at the moment; try again in a second.");
  // Tried once a second.
  const before = counts.reads;
  for (let at = 0; at < 40; at++) {
    clock.advance(100);
    expect(await outcome(key)).toBe("unavailable");
  }
  expect(counts.reads - before).toBe(4);
  trouble.isAway = false;
  clock.advance(1_000);
  expect(await outcome(key)).toBe(`key:${id}`);
});

test("a store that cannot be opened makes keys unavailable", async () => {
  const clock = new FakeClock();
  const openKeys = () => Promise.reject(new Error("no such file"));
  const verifier = createKeyVerifier({ openKeys, project: "home", clock, log: silentLog });
  await expect(async () => await verifier.verify(createApiKey().key)).rejects.toMatchObject({ kind: "unavailable" });
});

test("a store that answers slowly holds a request for 3 s, and is read once at a time", async () => {
  const { verifier, counts, trouble, add, clock, outcome } = open();
  const { id, key } = await add();
  await verifier.verify(key);
  trouble.isSlowMs = 10_000;
  clock.advance(4_000);
  const startedAt = clock.now();
  expect(await outcome(key)).toBe("unavailable");
  expect(clock.now() - startedAt).toBe(3_000);
  // The read is still under way: nobody waits for it again.
  expect(await outcome(key)).toBe("unavailable");
  expect(clock.now() - startedAt).toBeLessThan(3_200);
  expect(counts.reads).toBe(2);
  trouble.isSlowMs = 0;
  clock.advance(8_000);
  await turns();
  expect(await outcome(key)).toBe(`key:${id}`);
  expect(counts.reads).toBe(3);
});

test("the hour of a use is noted once an hour and key, in the background", async () => {
  const { verifier, keys, counts, trouble, add, clock } = open();
  const [ci, laptop] = [await add(), await add("laptop")];
  for (let at = 0; at < 10; at++) for (const { key } of [ci, laptop]) await verifier.verify(key);
  expect(counts.notes).toBe(2);
  expect((await keys.list("home")).keys.map(({ usedAt }) => usedAt)).toEqual([1_000 * hourMs, 1_000 * hourMs]);
  clock.advance(hourMs - 1);
  await verifier.verify(ci.key);
  expect(counts.notes).toBe(2);
  clock.advance(2_000);
  await verifier.verify(ci.key);
  expect(counts.notes).toBe(3);
  await turns();
  // One that fails holds up nothing, and is not tried again at once.
  clock.advance(hourMs);
  await verifier.verify(laptop.key);
  trouble.isAway = true;
  for (let at = 0; at < 10; at++) await verifier.verify(ci.key);
  await turns();
  expect(counts.notes).toBe(5);
});

test("logs why a key was refused, each reason once a minute, and never a secret", async () => {
  const { clock, add, outcome, warnings } = open();
  const [elsewhere, expired, rotated] = [
    await add("a", { project: "other" }),
    await add("b", { expiresInMs: 1 }),
    await add("c"),
  ];
  clock.advance(1);
  const other = createApiKey(rotated.id).key;
  for (const key of [elsewhere.key, elsewhere.key, expired.key, other]) expect(await outcome(key)).toBe("invalid");
  expect(warnings).toEqual([
    [expect.stringContaining("refused: this project has no key of this ID"), { id: elsewhere.id }],
    ["an API key was refused: it has expired", { id: expired.id }],
    ["an API key was refused: its secret is not valid, or not any more", { id: rotated.id }],
  ]);
  clock.advance(60_000);
  await outcome(elsewhere.key);
  expect(warnings).toHaveLength(4);
  for (const { key } of [elsewhere, expired, { key: other }])
    expect(JSON.stringify(warnings)).not.toContain(key.slice(-43));
});
