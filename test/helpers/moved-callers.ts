import { expect, onTestFinished, test } from "vitest";
import { createApiKey } from "../../src/auth/api-key.ts";
import { appCaller, callerKey, keyCaller } from "../../src/command/caller.ts";
import { checkStore, migrateStore } from "../../src/store/manage.ts";
import { openStore } from "../../src/store/open.ts";
import { newTask } from "../store-suite/cases/bench.ts";

interface Place {
  readonly store: string;
  /** Brings the store back to the schema before API keys. */
  toEarlier(): Promise<void>;
}

const tokenKey = (issuer: string, client: string, subject: string) =>
  `token:${JSON.stringify([issuer, client, subject])}`;
const appKey = (project: string, id: string) => callerKey(appCaller(project, id));

const odd = 'quotes " and \\ and \\" and \n\t\b\u0001\u007f, é 🙂 \u2028 </x>, #sub:, [",","]';
/** What no database keeps as it is. */
const unkeepable = "nul \u0000, half a pair \ud800, the mark \u001a0000";

/** Caller keys of the version before, and what becomes of each. */
const moves: readonly (readonly [project: string, before: string, after: string])[] = [
  ["home", tokenKey("", "", "ada"), appKey("home", "ada")],
  ["home", tokenKey("", "cli", "bob"), appKey("home", "bob")],
  ["other", tokenKey("", "cli", "bob"), appKey("other", "bob")],
  ["home", tokenKey("https://id.example", "cli", "bob"), appKey("home", "https://id.example#sub:bob")],
  ["home", tokenKey(odd, odd, odd), appKey("home", `${odd}#sub:${odd}`)],
  [`a "project" of ${odd}`, tokenKey("", odd, odd), appKey(`a "project" of ${odd}`, odd)],
  ["home", tokenKey(unkeepable, "", unkeepable), appKey("home", `${unkeepable}#sub:${unkeepable}`)],
  // What no version has written stays.
  ...["token:[1,2,3]", 'token:["a","b"]', "token:nonsense", 'token:["a","b","c"', 'token:{"a":"b"}', "token:"].map(
    (key) => ["home", key, key] as const,
  ),
  ...["anonymous", "local:home-1", "local", appKey("home", "grace")].map((key) => ["home", key, key] as const),
];

/** Tests of the migration that gives the users of an app their new caller keys, on one kind of store. */
export function testMovedCallers(
  kind: string,
  schemas: { from: number; to: number },
  open: () => Promise<Place>,
): void {
  /** A migrated store that had these tasks before. */
  async function migrated(
    tasks: readonly { taskId: string; caller: string; project?: string; idempotencyKey?: string }[],
    sessions: readonly (readonly [sessionId: string, caller: string])[] = [],
  ) {
    const place = await open();
    const before = await openStore(place.store);
    for (const [at, task] of tasks.entries()) {
      const created = await before.create(newTask(at, task), { joinsEqual: false, maxLive: 1_000 });
      expect(created.kind).toBe("created");
    }
    for (const [sessionId, caller] of sessions)
      await before.shared.sessions.keep({ sessionId, caller, greeting: "{}", silenceMs: 60_000_000 }, 100, "node");
    await before.close();
    await place.toEarlier();
    expect(await migrateStore(place.store)).toEqual(schemas);
    expect((await checkStore(place.store)).problems.filter((problem) => !problem.startsWith("No caller"))).toEqual([]);
    const store = await openStore(place.store);
    onTestFinished(() => store.close());
    return Object.assign(store, { address: place.store });
  }

  test(`${kind}: a stored caller key of an app's user is moved to the user's new key`, async () => {
    const store = await migrated(
      moves.map(([project, caller], at) => ({ taskId: `task-${at}`, caller, project })),
      moves.map(([project, caller], at) => [`session-${at}`, `${project} ${caller}`]),
    );
    for (const [at, [project, before, after]] of moves.entries()) {
      expect(await store.get({ caller: after }, `task-${at}`), before).toMatchObject({ caller: after, project });
      expect(await store.shared.sessions.find(`${project} ${after}`, `session-${at}`), before).toBeDefined();
      if (before !== after) expect(await store.get({ caller: before }, `task-${at}`)).toBeUndefined();
    }
  });

  test(`${kind}: an idempotency key that several callers used stays with the newest task of the one that they become`, async () => {
    const idempotencyKey = "once";
    const tasks = [
      { taskId: "older", caller: tokenKey("", "cli", "ada"), idempotencyKey },
      { taskId: "oldest of the app", caller: appKey("home", "bob"), idempotencyKey },
      { taskId: "newer", caller: tokenKey("", "web", "ada"), idempotencyKey },
      { taskId: "of another key", caller: tokenKey("", "cli", "ada"), idempotencyKey: "twice" },
      { taskId: "of another project", caller: tokenKey("", "cli", "ada"), project: "other", idempotencyKey },
      { taskId: "of another issuer", caller: tokenKey("https://id.example", "cli", "ada"), idempotencyKey },
      { taskId: "newest of bob", caller: tokenKey("", "", "bob"), idempotencyKey },
      { taskId: "of nobody", caller: "anonymous", idempotencyKey },
    ];
    const store = await migrated(tasks);
    const keyOf = async (caller: string, taskId: string) => {
      const task = await store.get({ caller }, taskId);
      expect(task, taskId).toBeDefined();
      return task?.idempotencyKey;
    };
    const ada = appKey("home", "ada");
    expect(await keyOf(ada, "older")).toBeUndefined();
    expect(await keyOf(ada, "newer")).toBe("once");
    expect(await keyOf(ada, "of another key")).toBe("twice");
    expect(await keyOf(appKey("other", "ada"), "of another project")).toBe("once");
    expect(await keyOf(appKey("home", "https://id.example#sub:ada"), "of another issuer")).toBe("once");
    expect(await keyOf(appKey("home", "bob"), "oldest of the app")).toBeUndefined();
    expect(await keyOf(appKey("home", "bob"), "newest of bob")).toBe("once");
    expect(await keyOf("anonymous", "of nobody")).toBe("once");
    const again = await store.create(newTask(100, { caller: ada, idempotencyKey }), { joinsEqual: false, maxLive: 9 });
    expect(again).toMatchObject({ kind: "repeated", task: { taskId: "newer" } });
  });

  test(`${kind}: a migrated store keeps the API keys that are added to it`, async () => {
    const store = await migrated([{ taskId: "task", caller: tokenKey("", "cli", "ada") }]);
    const { keys } = store.shared;
    const { id, hash } = createApiKey();
    expect((await keys.list("home")).keys).toEqual([]);
    expect(await keys.add({ id, hash, project: "home", name: "ci", scopes: ["a:b"], commands: ["report_*"] })).toBe(
      true,
    );
    await store.create(newTask(1, { taskId: "of the key", caller: callerKey(keyCaller(id)) }), {
      joinsEqual: false,
      maxLive: 9,
    });
    await store.close();
    const again = await openStore(store.address);
    onTestFinished(() => again.close());
    const facts = { id, hash, name: "ci", scopes: ["a:b"], commands: ["report_*"] };
    expect((await again.shared.keys.list("home")).keys).toEqual([expect.objectContaining(facts)]);
    expect(await again.get({ caller: callerKey(keyCaller(id)) }, "of the key")).toBeDefined();
    expect(await again.get({ caller: appKey("home", "ada") }, "task")).toBeDefined();
  });
}
