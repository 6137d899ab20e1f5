import { expect, test } from "vitest";
import { createLinux } from "../../src/system/linux.ts";
import type { System } from "../../src/system/system.ts";
import { createWorkerName, isKnownDead } from "../../src/system/worker-name.ts";

const facts: System = { ...createLinux(), bootId: () => "boot", pidNamespace: () => "pid:[1]", ownStart: () => "100" };
/** What Linux tells a process without a file descriptor left, and macOS one whose `ps` or `sysctl` takes too long. */
const unread: readonly [string, Partial<System>][] = [
  ["the boot", { bootId: () => "-" }],
  ["the namespace", { pidNamespace: () => "-" }],
  ["the start of its process", { ownStart: () => undefined }],
];

test.each(unread)("a worker of this process lives while %s cannot be read", (_what, replaced) => {
  expect(isKnownDead(createWorkerName(facts), { on: { ...facts, ...replaced } })).toBe(false);
});

test.each(unread)("a worker of this process lives that was named while %s could not be read", (_what, replaced) => {
  expect(isKnownDead(createWorkerName({ ...facts, ...replaced }), { on: facts })).toBe(false);
});

test("a worker is dead whose boot or process has gone", () => {
  const worker = createWorkerName(facts);
  expect(isKnownDead(worker, { on: { ...facts, bootId: () => "later" } })).toBe(true);
  expect(isKnownDead(worker, { on: { ...facts, ownStart: () => "200" } })).toBe(true);
});
