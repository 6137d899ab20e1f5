import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { MemoryStore } from "../../../src/store/memory-store.ts";
import { openStore } from "../../../src/store/open.ts";
import { endedLetter, type Letter, maxLetters, type SharedState } from "../../../src/task/shared-state.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { postgresStores } from "../../helpers/postgres.ts";

/** What servers on one store share beside the tasks, as two of them see it. */
interface Two {
  readonly clock: FakeClock;
  readonly a: SharedState;
  readonly b: SharedState;
}

const openPostgres = postgresStores();

const kinds: Readonly<Record<string, () => Promise<Two>>> = {
  async memory() {
    const clock = new FakeClock();
    const { shared } = new MemoryStore(clock);
    return { clock, a: shared, b: shared };
  },
  async SQLite() {
    const clock = new FakeClock();
    const file = path.join(temporaryFolder(), "tasks.db");
    const open = async () => {
      const store = await openStore(file, { clock });
      onTestFinished(() => store.close());
      return store.shared;
    };
    return { clock, a: await open(), b: await open() };
  },
  async PostgreSQL() {
    const clock = new FakeClock();
    const open = async () => {
      const store = await openPostgres({ clock, place: "shared" });
      onTestFinished(() => store.close());
      return store.shared;
    };
    return { clock, a: await open(), b: await open() };
  },
};

const minuteMs = 60_000;
const sessionOf = (sessionId: string, caller = "local") => ({
  ...{ sessionId, caller, greeting: '{"capabilities":{}}', silenceMs: 60 * minuteMs },
});

/** Letters as one server reads them. */
function readerOf({ sessions }: SharedState, node: string) {
  const letters: Letter[] = [];
  onTestFinished(sessions.onLetter(node, (letter) => letters.push(letter)));
  return {
    read: async () => {
      // Whoever looks for a session has heard before what there is to hear.
      await sessions.find("nobody", "none");
      return letters.splice(0).map(({ sessionId, text }) => `${sessionId} ${text}`);
    },
  };
}

for (const [kind, open] of Object.entries(kinds))
  describe(kind, () => {
    test("the secret is made once, however many ask for it at once", async () => {
      const { a, b } = await open();
      const secrets = await Promise.all([a.secret(), b.secret(), a.secret(), b.secret()]);
      expect(new Set(secrets).size).toBe(1);
      expect(secrets[0]?.length).toBeGreaterThanOrEqual(43);
    });

    test("what may be used once is used once, wherever, until its time is over", async () => {
      const { clock, a, b } = await open();
      const uses = await Promise.all([a, b, a, b].map((shared) => shared.useOnce("mark", minuteMs)));
      expect(uses.filter(Boolean)).toHaveLength(1);
      expect([await a.useOnce("another", minuteMs), await b.useOnce("another", minuteMs)]).toEqual([true, false]);
      clock.advance(minuteMs);
      expect(await b.useOnce("mark", minuteMs)).toBe(true);
    });

    test("a session is found by its caller, with what was noted of it; somebody else's, and an ended one, is not", async () => {
      const { a, b } = await open();
      const reader = readerOf(b, "B");
      await b.sessions.find("local", "none");
      expect(await a.sessions.keep(sessionOf("s"), 10, "A")).toBe(true);
      await a.sessions.note({ level: "error", "resource:a://b": true }, { sessionId: "s", from: "A", text: "first" });
      await b.sessions.note({ "resource:a://b": null, more: 1 }, { sessionId: "s", from: "B", text: "second" });
      expect(await b.sessions.find("local", "s")).toEqual({ ...sessionOf("s"), notes: { level: "error", more: 1 } });
      expect(await b.sessions.find("anonymous", "s")).toBeUndefined();
      expect(await reader.read()).toEqual(["s first"]);
      expect(await a.sessions.end("s", "A")).toBe(true);
      expect([await a.sessions.find("local", "s"), await b.sessions.find("local", "s")]).toEqual([
        undefined,
        undefined,
      ]);
      expect(await reader.read()).toEqual([`s ${endedLetter}`]);
      expect(await b.sessions.end("s", "B")).toBe(false);
    });

    test("a session lasts as long as it is used", async () => {
      const { clock, a, b } = await open();
      for (const id of ["used", "silent"]) await a.sessions.keep(sessionOf(id), 10, "A");
      clock.advance(59 * minuteMs);
      await b.sessions.touch([{ sessionId: "used", agoMs: 9 * minuteMs }]);
      clock.advance(minuteMs);
      const found = async () =>
        (await Promise.all(["used", "silent"].map((id) => a.sessions.find("local", id)))).map((one) => one?.sessionId);
      expect(await found()).toEqual(["used", undefined]);
      await a.sessions.sweep();
      clock.advance(50 * minuteMs);
      expect(await found()).toEqual([undefined, undefined]);
      expect(await a.sessions.end("silent", "A")).toBe(false);
    });

    test("who has too many loses the one used longest ago whose stream nobody holds", async () => {
      const { clock, a, b } = await open();
      for (const id of ["held", "old", "new"]) {
        await a.sessions.keep(sessionOf(id), 3, "A");
        clock.advance(1);
      }
      const holdStream = (sessionId: string) =>
        b.sessions.note({ "stream:B": true }, { sessionId, from: "B", text: "held" });
      await holdStream("held");
      await a.sessions.keep(sessionOf("theirs", "anonymous"), 3, "A");
      const reader = readerOf(a, "A");
      await a.sessions.find("local", "old");
      await reader.read();
      expect(await b.sessions.keep(sessionOf("next"), 3, "B")).toBe(true);
      expect(await reader.read()).toEqual([`old ${endedLetter}`]);
      const found = await Promise.all(["held", "old", "new", "next"].map((id) => a.sessions.find("local", id)));
      expect(found.map((one) => one?.sessionId)).toEqual(["held", undefined, "new", "next"]);
      for (const id of ["new", "next"]) await holdStream(id);
      expect(await a.sessions.keep(sessionOf("last"), 3, "A")).toBe(false);
    });

    test("letters reach whom they are for, once, in order, and nobody reads its own", async () => {
      const { a, b } = await open();
      const [first, second] = [readerOf(a, "A"), readerOf(b, "B")];
      for (const { sessions } of [a, b]) await sessions.find("local", "s");
      const post = (from: string, text: string, to?: string) =>
        (from === "A" ? a : b).sessions.post([{ sessionId: "s", from, to, text }]);
      await post("A", "to all");
      await post("A", "to B", "B");
      await post("A", "to somebody else", "C");
      await post("B", "to A", "A");
      expect([await second.read(), await first.read()]).toEqual([["s to all", "s to B"], ["s to A"]]);
      expect([await second.read(), await first.read()]).toEqual([[], []]);
    });

    test("who is there says so, until it leaves or has been silent for long", async () => {
      const { clock, a, b } = await open();
      await a.sessions.join("A");
      await b.sessions.join("B");
      expect([await b.sessions.isThere("A"), await b.sessions.isThere("C")]).toEqual([true, false]);
      await b.sessions.leave("B");
      expect(await a.sessions.isThere("B")).toBe(false);
      clock.advance(10 * minuteMs);
      expect(await b.sessions.isThere("A")).toBe(false);
    });
  });

test("SQLite: what nobody reads is bounded; what was read makes room", async () => {
  const { a, b } = await (kinds.SQLite as () => Promise<Two>)();
  const reader = readerOf(b, "B");
  await b.sessions.find("local", "s");
  const post = (count: number) =>
    a.sessions.post(Array.from({ length: count }, (_, n) => ({ sessionId: "s", from: "A", to: "B", text: `${n}` })));
  await post(maxLetters.count + 5);
  expect(await reader.read()).toHaveLength(maxLetters.count);
  await b.sessions.sweep();
  await post(5);
  expect(await reader.read()).toHaveLength(5);
  await a.sessions.post([{ sessionId: "s", from: "A", to: "C", text: "x".repeat(maxLetters.bytes) }]);
  await a.sessions.post([{ sessionId: "s", from: "A", to: "B", text: "one too many" }]);
  await a.sessions.post([{ sessionId: "another", from: "A", to: "B", text: "another session's" }]);
  expect(await reader.read()).toEqual(["another another session's"]);
});

test.each(["SQLite", "PostgreSQL"])(
  "%s: a letter that comes with a note is bounded like any other, and the note is kept",
  async (kind) => {
    const { a, b } = await (kinds[kind] as () => Promise<Two>)();
    const reader = readerOf(b, "B");
    for (const id of ["full", "large"]) await a.sessions.keep(sessionOf(id), 10, "A");
    await b.sessions.find("local", "full");
    const unread = { from: "A", to: "C" };
    await a.sessions.post(
      Array.from({ length: maxLetters.count }, () => ({ sessionId: "full", ...unread, text: "unread" })),
    );
    await a.sessions.post([{ sessionId: "large", ...unread, text: "x".repeat(maxLetters.bytes) }]);
    for (const sessionId of ["full", "large"]) {
      await a.sessions.note({ level: "error" }, { sessionId, from: "A", text: "one too many" });
      expect((await b.sessions.find("local", sessionId))?.notes, sessionId).toEqual({ level: "error" });
    }
    await a.sessions.keep(sessionOf("another"), 10, "A");
    await a.sessions.note({ level: "error" }, { sessionId: "another", from: "A", text: "another session's" });
    expect(await reader.read()).toEqual(["another another session's"]);
    // That a session has ended is said however much nobody has read.
    await a.sessions.end("full", "A");
    expect(await reader.read()).toEqual([`full ${endedLetter}`]);
  },
);
