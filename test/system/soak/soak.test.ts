import { expect, test } from "vitest";
import { rounds } from "../../helpers/rounds.ts";
import { endsOf, type Sample, slopeOf } from "./measure.ts";
import { bytesKept, type HeapLook, maxKeptBytes } from "./repeat.ts";
import { runSoak, summarizeSoak } from "./soak.ts";

test("clients of three generations for a while, deaths, questions and large results: 0 lost, 0 done twice, 0 unanswered, and a heap under 400 MB", {
  timeout: 420_000,
}, async () => {
  const report = await runSoak({ minutes: rounds.soakMinutes, seed: 20_260_728, clients: rounds.soakClients });
  process.stdout.write(summarizeSoak(report));
  const { lost, double, unanswered, wrong, growing } = report;
  expect({ lost, double, unanswered, wrong, growing }).toEqual({
    lost: [],
    double: [],
    unanswered: [],
    wrong: [],
    growing: [],
  });
  expect(report.promised).toBeGreaterThan(rounds.soakPromises);
  expect(report.counts.get("daemons killed")).toBeGreaterThan(0);
  for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"])
    expect(report.counts.get(`clients ${revision}`), revision).toBeGreaterThan(0);
});

test("a heap that grows by 6 MB an hour is told from one that only swings, and large results under way move neither", () => {
  const samples = (growthAnHour: number): Sample[] =>
    Array.from({ length: 108 }, (_, n) => ({
      atSeconds: 180 + n * 5,
      heapMB: 40 + (growthAnHour * n * 5) / 3600 + (n % 3) * 0.3 + (n % 7 === 0 ? 20 : 0),
      rssMB: 200,
      fds: 40,
      threads: 8,
    }));
  expect(slopeOf(samples(0), "heapMB")).toBeLessThan(1);
  expect(slopeOf(samples(6), "heapMB")).toBeGreaterThan(5);
  expect(slopeOf(samples(6), "fds")).toBe(0);
  expect(endsOf(samples(6), "heapMB")[1]).toBeGreaterThan(40.5);
});

test("a leak of 200 bytes a request is told from a cache that fills and from a heap that swings", () => {
  const looks = (keptBytes: (requests: number) => number): HeapLook[] =>
    Array.from({ length: 12 }, (_, n) => ({
      requests: n * 1_000,
      heapBytes: 30e6 + keptBytes(n * 1_000) + (n % 3) * 20_000,
    }));
  const cache = (requests: number) => Math.min(requests, 5_000) * 2_000;
  expect(bytesKept(looks(cache))).toBeLessThan(maxKeptBytes);
  const leak = (requests: number) => cache(requests) + 200 * requests;
  expect(bytesKept(looks(leak))).toBeGreaterThan(maxKeptBytes);
  const emptied = (requests: number) => leak(requests) - (requests > 9_000 ? 4e6 : 0);
  expect(bytesKept(looks(emptied)), "a cache was emptied").toBeGreaterThan(maxKeptBytes);
});
