import assert from "node:assert/strict";
import type { KeyStore, NewKey, StoredKey } from "../../../src/auth/key-store.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import type { KeyCase, KeyPlace, OpenKeys } from "../key-suite.ts";

const hourMs = 3_600_000;
const startedAt = 1_000 * hourMs + 12_345;

function newKey(name: string, facts: Partial<NewKey> = {}): NewKey {
  return {
    ...{ id: `id-of-${name}`, name, hash: `hash-of-${name}`, project: "home" },
    ...{ scopes: ["meanwhile:call"], commands: [], ...facts },
  };
}

interface KeyBench {
  readonly clock: FakeClock;
  readonly keys: KeyStore;
}

function onKeys(title: string, act: (bench: KeyBench) => Promise<void>): KeyCase {
  return {
    title,
    async run(open) {
      const clock = new FakeClock(startedAt);
      await withPlaces(open, { clock }, 1, ([{ shared }]) => act({ clock, keys: shared.keys }));
    },
  };
}

/** Two nodes on one store. */
function onTwoNodes(title: string, act: (one: KeyStore, other: KeyStore) => Promise<void>): KeyCase {
  return {
    title,
    needsPlaces: true,
    async run(open) {
      const options = { clock: new FakeClock(startedAt), place: "shared" };
      await withPlaces(open, options, 2, ([one, other = one]) => act(one.shared.keys, other.shared.keys));
    },
  };
}

async function withPlaces(
  open: OpenKeys,
  options: Parameters<OpenKeys>[0],
  count: number,
  act: (places: readonly [KeyPlace, KeyPlace?]) => Promise<void>,
): Promise<void> {
  const places: KeyPlace[] = [];
  try {
    while (places.length < count) places.push(await open(options));
    await act(places as [KeyPlace, KeyPlace?]);
  } finally {
    for (const place of places) await place.close();
  }
}

async function listed(keys: KeyStore, project = "home"): Promise<readonly StoredKey[]> {
  return (await keys.list(project)).keys;
}

async function namesOf(keys: KeyStore, project = "home"): Promise<readonly string[]> {
  return (await listed(keys, project)).map(({ name }) => name);
}

export const keyCases: readonly KeyCase[] = [
  onKeys("a key is listed with all that it was added with, at the store's time", async ({ clock, keys }) => {
    assert.deepEqual(await keys.list("home"), { now: startedAt, keys: [] });
    const scopes = ["meanwhile:call", 'repo:"admin"'];
    const commands = ["report_*", "text_count"];
    assert.equal(await keys.add(newKey("ci", { scopes, commands, expiresInMs: 90 * 24 * hourMs })), true);
    clock.advance(1_000);
    assert.equal(await keys.add(newKey("Ben's laptop 🙂")), true);
    const common = { scopes: ["meanwhile:call"], commands: [] };
    assert.deepEqual(await keys.list("home"), {
      now: startedAt + 1_000,
      keys: [
        {
          ...{ id: "id-of-ci", name: "ci", hash: "hash-of-ci", scopes, commands },
          ...{ createdAt: startedAt, expiresAt: startedAt + 90 * 24 * hourMs },
        },
        {
          ...{ id: "id-of-Ben's laptop 🙂", name: "Ben's laptop 🙂", hash: "hash-of-Ben's laptop 🙂", ...common },
          createdAt: startedAt + 1_000,
        },
      ],
    });
  }),

  onKeys("an expired key stays in the list", async ({ clock, keys }) => {
    await keys.add(newKey("ci", { expiresInMs: hourMs }));
    clock.advance(2 * hourMs);
    const { now, keys: found } = await keys.list("home");
    assert.equal(now, startedAt + 2 * hourMs);
    assert.equal(found[0]?.expiresAt, startedAt + hourMs);
  }),

  onKeys("a name is unique in its project, and nothing changes when it is added again", async ({ keys }) => {
    assert.equal(await keys.add(newKey("ci")), true);
    assert.equal(await keys.add(newKey("ci", { id: "another", hash: "another", scopes: [] })), false);
    assert.equal(await keys.add(newKey("CI", { id: "upper" })), true);
    assert.equal(await keys.add(newKey("ci", { id: "elsewhere", project: "other" })), true);
    const found = await listed(keys);
    assert.deepEqual(
      found.map(({ id, name }) => `${name} ${id}`),
      ["ci id-of-ci", "CI upper"],
    );
    assert.deepEqual(found.find(({ name }) => name === "ci")?.scopes, ["meanwhile:call"]);
    assert.deepEqual(
      (await listed(keys, "other")).map(({ id }) => id),
      ["elsewhere"],
    );
  }),

  onKeys("no verb reaches a key of another project", async ({ keys }) => {
    await keys.add(newKey("ci"));
    const before = await listed(keys);
    assert.deepEqual(await listed(keys, "other"), []);
    assert.equal(await keys.rotate("other", "ci", { hash: "stolen", overlapMs: 0 }), undefined);
    assert.equal(await keys.revoke("other", "ci"), false);
    await keys.noteUse("other", "id-of-ci");
    assert.deepEqual(await listed(keys), before);
  }),

  onKeys("rotate replaces the secret and keeps the one before for the overlap", async ({ clock, keys }) => {
    await keys.add(newKey("ci", { commands: ["text_*"], expiresInMs: 90 * hourMs }));
    await keys.noteUse("home", "id-of-ci");
    const [before] = await listed(keys);
    clock.advance(hourMs);
    const rotated = await keys.rotate("home", "ci", { hash: "second", overlapMs: 24 * hourMs });
    const earlier = { hash: "hash-of-ci", until: startedAt + 25 * hourMs };
    assert.deepEqual(rotated, { ...before, hash: "second", earlier });
    assert.deepEqual(await listed(keys), [rotated]);
    // Two secrets are valid at most: a second rotation ends the first one.
    const again = await keys.rotate("home", "ci", { hash: "third", overlapMs: hourMs });
    assert.deepEqual(again?.earlier, { hash: "second", until: startedAt + 2 * hourMs });
  }),

  onKeys("rotate without an overlap keeps no earlier secret", async ({ keys }) => {
    await keys.add(newKey("ci"));
    await keys.rotate("home", "ci", { hash: "second", overlapMs: hourMs });
    const rotated = await keys.rotate("home", "ci", { hash: "third", overlapMs: 0 });
    assert.equal(rotated?.hash, "third");
    assert.equal(rotated?.earlier, undefined);
    assert.deepEqual(await listed(keys), [rotated]);
  }),

  onKeys("rotate and revoke say that there is no key of a name", async ({ keys }) => {
    await keys.add(newKey("ci"));
    assert.equal(await keys.rotate("home", "none", { hash: "x", overlapMs: 0 }), undefined);
    assert.equal(await keys.revoke("home", "none"), false);
    assert.deepEqual(await namesOf(keys), ["ci"]);
  }),

  onKeys("a revoked key is gone, and its name may be used by a new one", async ({ keys }) => {
    await keys.add(newKey("ci"));
    await keys.add(newKey("laptop"));
    assert.equal(await keys.revoke("home", "ci"), true);
    assert.deepEqual(await namesOf(keys), ["laptop"]);
    assert.equal(await keys.revoke("home", "ci"), false);
    assert.equal(await keys.add(newKey("ci", { id: "new" })), true);
    assert.deepEqual((await listed(keys)).map(({ id }) => id).sort(), ["id-of-laptop", "new"]);
  }),

  onKeys("the hour of the last use is remembered, and never an earlier one", async ({ clock, keys }) => {
    await keys.add(newKey("ci"));
    await keys.add(newKey("unused"));
    const usedAt = async () => (await listed(keys)).find(({ name }) => name === "ci")?.usedAt;
    assert.equal(await usedAt(), undefined);
    await keys.noteUse("home", "id-of-ci");
    assert.equal(await usedAt(), 1_000 * hourMs);
    clock.advance(hourMs);
    await keys.noteUse("home", "id-of-ci");
    await keys.noteUse("home", "id-of-none");
    assert.equal(await usedAt(), 1_001 * hourMs);
    assert.equal((await listed(keys)).find(({ name }) => name === "unused")?.usedAt, undefined);
  }),

  onTwoNodes("two nodes: each sees at once what the other did", async (one, other) => {
    await one.add(newKey("ci"));
    assert.deepEqual(await listed(other), await listed(one));
    await other.rotate("home", "ci", { hash: "second", overlapMs: hourMs });
    assert.equal((await listed(one))[0]?.hash, "second");
    assert.equal(await other.revoke("home", "ci"), true);
    assert.deepEqual(await listed(one), []);
  }),

  onTwoNodes("two nodes: of those who add one name at once, one does", async (one, other) => {
    const added = await Promise.all(
      [one, other, one, other].map((keys, at) => keys.add(newKey("ci", { id: `id-${at}`, hash: `hash-${at}` }))),
    );
    assert.equal(added.filter(Boolean).length, 1);
    assert.deepEqual(
      (await listed(one)).map(({ id }) => id),
      [`id-${added.indexOf(true)}`],
    );
  }),

  {
    title: "a key is there after closing and opening again",
    needsPlaces: true,
    async run(open) {
      const options = { clock: new FakeClock(startedAt), place: "kept" };
      let before: readonly StoredKey[] = [];
      await withPlaces(open, options, 1, async ([{ shared }]) => {
        await shared.keys.add(newKey("ci", { expiresInMs: hourMs }));
        await shared.keys.rotate("home", "ci", { hash: "second", overlapMs: hourMs });
        before = await listed(shared.keys);
      });
      await withPlaces(open, options, 1, async ([{ shared }]) => assert.deepEqual(await listed(shared.keys), before));
    },
  },
];
