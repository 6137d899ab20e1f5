import { defineConfig } from "vitest/config";

/** Whole processes, sockets and packages: few at a time, each file in a process of its own. */
const system = ["test/scenarios/**/*.test.ts", "test/conformance/**/*.test.ts", "test/package/**/*.test.ts", "test/chaos/**/*.test.ts"];

export default defineConfig({
  test: {
    // These tests mostly wait for processes: four files at a time, also on two cores.
    maxWorkers: 4,
    projects: [
      {
        test: { name: "unit", include: ["test/**/*.test.ts"], exclude: system, isolate: false, testTimeout: 10_000, experimental: { viteModuleRunner: false } },
      },
      { test: { name: "system", include: system, testTimeout: 60_000, hookTimeout: 60_000, pool: "forks", experimental: { viteModuleRunner: false } } },
    ],
  },
});
