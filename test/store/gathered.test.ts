import { expect, test } from "vitest";
import { Gathered } from "../../src/store/postgres/gathered.ts";

/** Statements that end when they are told to, and how. */
function setUp() {
  const begun: { readonly jobs: readonly string[]; readonly end: (error?: Error) => void }[] = [];
  const alone: { readonly job: string; readonly isAgain: boolean; readonly since: number }[] = [];
  let time = 1;
  const gathered = new Gathered<string, string>({
    together(jobs) {
      const { promise, resolve, reject } = Promise.withResolvers<string[]>();
      const results = jobs.map((job) => job.toUpperCase());
      begun.push({ jobs, end: (error) => (error === undefined ? resolve(results) : reject(error)) });
      return promise;
    },
    async alone(job, isAgain, since) {
      alone.push({ job, isAgain, since });
      return `${job} alone`;
    },
    monotonic: () => time++,
    isLost: (error) => error instanceof Error && error.message === "lost",
    lanes: 2,
  });
  return { begun, alone, add: (job: string, bytes?: number) => gathered.add(job, bytes) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("what comes in one turn goes together, and what comes while two statements are under way goes with the next", async () => {
  const { begun, add } = setUp();
  const added = [add("a"), add("b")];
  await turn();
  added.push(add("c"));
  await turn();
  added.push(add("d"));
  await turn();
  added.push(add("e"));
  await turn();
  expect(begun.map(({ jobs }) => jobs)).toEqual([["a", "b"], ["c"]]);
  begun[1]?.end();
  await turn();
  expect(begun[2]?.jobs).toEqual(["d", "e"]);
  for (const { end } of begun) end();
  expect(await Promise.all(added)).toEqual(["A", "B", "C", "D", "E"]);
});

test("nobody is answered before the statement is over", async () => {
  const { begun, add } = setUp();
  let isAnswered = false;
  const added = add("a").then(() => (isAnswered = true));
  await turn();
  expect({ sent: begun[0]?.jobs, isAnswered }).toEqual({ sent: ["a"], isAnswered: false });
  begun[0]?.end();
  expect(await added).toBe(true);
});

test("where it failed each is tried by itself, as one that was never tried", async () => {
  const { begun, alone, add } = setUp();
  const added = [add("a"), add("b")];
  await turn();
  begun[0]?.end(new Error("refused"));
  expect(await Promise.all(added)).toEqual(["a alone", "b alone"]);
  expect(alone).toEqual([
    { job: "a", isAgain: false, since: 1 },
    { job: "b", isAgain: false, since: 2 },
  ]);
});

test("where nobody knows what came of it each is tried by itself, as one that may have been done", async () => {
  const { begun, alone, add } = setUp();
  const added = [add("a"), add("b")];
  await turn();
  begun[0]?.end(new Error("lost"));
  await Promise.all(added);
  expect(alone.map(({ isAgain }) => isAgain)).toEqual([true, true]);
});

test("where the server is silent, those that wait behind it wait no longer, and all for as long as since they came", async () => {
  const { begun, alone, add } = setUp();
  const added = [add("a")];
  await turn();
  added.push(add("b"));
  await turn();
  added.push(add("c"), add("d"));
  await turn();
  begun[0]?.end(new Error("lost"));
  await turn();
  expect(alone).toEqual([
    { job: "a", isAgain: true, since: 1 },
    { job: "c", isAgain: false, since: 3 },
    { job: "d", isAgain: false, since: 4 },
  ]);
  begun[1]?.end();
  expect(await Promise.all(added)).toEqual(["a alone", "B", "c alone", "d alone"]);
});

test("a large one goes by itself, and keeps nobody waiting", async () => {
  const { begun, alone, add } = setUp();
  expect(await add("large", 1_000_000)).toBe("large alone");
  expect({ begun: begun.length, alone }).toEqual({ begun: 0, alone: [{ job: "large", isAgain: false, since: 1 }] });
});
