import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "..");

test("below the scenarios nothing waits for a fixed time: for an event, with waitFor, or for a clock that is moved", () => {
  const files = globSync("**/*.{ts,mjs}", {
    cwd: root,
    exclude: ["{chaos,fixtures,long,node_modules,package,scenarios,system}/**"],
  });
  expect(files.length).toBeGreaterThan(150);
  // A timer called a guard only keeps a test from hanging.
  const waits = /(?<!guard = )\bsetTimeout\(|\bsetTimeout as\b|\bsleep\((?!clock,)|systemClock\.after\(/g;
  const found = files.flatMap((file) =>
    [...readFileSync(path.join(root, file), "utf8").matchAll(waits)].map(() => file),
  );
  // waitFor itself, which polls, and what leaves the system a millisecond to hand over what was sent.
  expect(found).toEqual(["helpers/real-work.ts", "helpers/wait-for.ts"]);
});

test("no scenario waits for a fixed time; its commands, which are text, may poll for a file", () => {
  const files = globSync("scenarios/**/*.ts", { cwd: root });
  expect(files.length).toBeGreaterThan(50);
  const waits = /^ *await (?:sleep\(\d+\)|new Promise\(\(resolve\) => setTimeout\(resolve, \d)/m;
  expect(files.filter((file) => waits.test(readFileSync(path.join(root, file), "utf8")))).toEqual([]);
});
